/** Yes or no in the browser: one of two declared answers. */

export { answers, control, fits, hint, read, reported } from "../options.js";
