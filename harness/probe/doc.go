// Package probe looks at the machine that a run measures on: its identity and
// its limits. What cannot be read is absent, never guessed.
package probe
