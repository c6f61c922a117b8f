package main

import "benchrun/reports/page"

// render writes the report of a run folder from its raw samples. Its verdicts
// rest on the committed thresholds, as those of a gate do.
func render(dir string) error {
	t, err := thresholds("")
	if err != nil {
		return err
	}
	return page.Render(dir, t)
}
