// Package benchrun is the root of the module. It holds no code: the command
// is in cmd/benchrun, and ARCHITECTURE.md tells where everything else is. The
// tests here hold the whole tree to that page.
package benchrun
