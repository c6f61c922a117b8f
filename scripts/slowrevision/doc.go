// Command slowrevision makes a revision whose recovery is slower by a known
// share: the night's gate has to find it. It plants a wait into the restore of
// the recovery path "downstream", sizes the wait with a pilot so that the
// primary metric of that cell rises by the share, commits it beside all branches
// and prints the revision.
//
//	go run ./scripts/slowrevision [-rise 25]
package main
