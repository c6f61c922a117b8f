// Package expect computes what a job must put out, given where its sources
// stood in the end, and compares that with what its sinks saw.
//
// It shares nothing with the runtime: no operator, source, hash or partitioner
// of it is called here. Where both sides must agree on a function (how a number
// becomes a key, what an operator does to a record) it is written down again.
//
// # What is proved
//
// Every record has an identity: source, number and copy, or key and number for
// an aggregate. The sink must have seen each expected identity exactly once.
// Running values depend on the order of arrival, so of values only the final
// one of each key is compared, and only where it does not depend on order:
// behind a keyed operator whose output reaches the sink whole.
package expect
