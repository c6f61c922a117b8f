// Package failpoint holds named places in the runtime where a test or a trial
// can make something go wrong.
//
// A Point is a package-level variable of the code that owns the place. While
// nothing is armed, passing a point costs one atomic load. Arming is global to
// the process and counted, so a test must disarm what it armed (Arm returns
// the function that does). An armed action decides on each hit whether it
// fires; it gets the hit's ordinal, from 1, and a free-form subject such as
// "vertex/subtask", so that the same seed makes the same choice.
package failpoint
