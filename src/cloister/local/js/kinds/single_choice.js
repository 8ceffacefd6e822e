/** A single choice in the browser: one of several declared answers. */

export { answers, control, fits, hint, read, reported } from "../options.js";
