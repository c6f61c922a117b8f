// Package probe looks at the machine that a run measures on: its identity and
// its limits, how noisy it is, and what it does besides while a trial runs.
// What cannot be read is absent, never guessed.
//
// There are four looks, and a fifth that people ask for:
//
//   - Machine reads what stays the same from hour to hour, and the load;
//   - Noise does a fixed piece of work several times, on the CPU, in memory, to
//     disk and over the loopback: its numbers tell machines and bad days apart,
//     its spread tells how far two equal trials may differ. A third of a second;
//   - Quick does a little of that work in the moment before and after a trial,
//     in about 20 ms;
//   - Sampler reads the counters of the host between two moments of a trial.
//     A sample costs about a tenth of a millisecond, so twice a second is free.
//
// Examine collects what Diagnose, which is pure, judges: is this machine fit to
// measure on, and what could a comparison see at best?
//
// A container sees the host's memory and load; the limits of its control group,
// version 1 or 2, are read beside them.
package probe
