/** The version of this page; set when it is built. */
declare const __VERSION__: string;
