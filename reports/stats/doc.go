// Package stats describes samples: their middle, their spread, an interval for
// the median, and the signs that one number does not do them justice.
//
// Samples are few (three to thirty trials a cell), skewed and without a known
// distribution, so everything rests on ranks:
//
//   - the median is the headline, its interval is distribution-free: two order
//     statistics, chosen so that they enclose the median of the population
//     with at least the asked probability. Too few samples have no interval;
//   - percentiles are of the nearest rank: a value that was really measured;
//   - the deviation is that of a sample (n-1);
//   - ratios are compared on logarithms, with a seeded percentile bootstrap.
//
// Functions take finite numbers, leave their arguments as they are, and say by
// a false or an absent value what the samples are too few to tell. They never
// return NaN or an infinity. Equal input gives equal output, bit for bit.
package stats
