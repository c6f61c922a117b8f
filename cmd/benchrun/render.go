package main

import "benchrun/reports/page"

// render writes the report of a run folder from its raw samples.
var render = page.Render
