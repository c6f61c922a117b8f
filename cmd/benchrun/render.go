package main

// render writes the report of a run folder from its raw samples. Nil while
// this build has no renderer.
var render func(dir string) error
