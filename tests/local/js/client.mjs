// The client as Node and the browser both find it: this folder and the client's are at the same places on the test server.
export * from "../../../src/cloister/local/js/index.js";
