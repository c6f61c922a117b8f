// Package graph is the logical and the chained form of a job.
//
// A Job is made of operators (Node) and Links between them. Build checks it
// and chains operators that can share a task into vertices: a link is chained
// when it is a forward link between equal parallelisms and the only input of
// its target. What is left are Edges between vertices, each with a data-set id
// that names it in checkpoints: "from->to#n", by operator ids and the ordinal
// among the links between those two.
//
// In batch mode every edge between vertices is blocking: the consumers read what
// a finished producer has left. A parallelism of 0 is then decided at run time,
// and forward edges do not need equal ones.
//
// A Graph is immutable except for parallelism, which Scale changes on a copy.
// Operators are named, with parameters as JSON: a graph travels to workers.
package graph
