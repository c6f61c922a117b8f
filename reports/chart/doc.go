// Package chart draws the pictures of a report: points of samples, bars of
// medians, ratios with their intervals (Forest), a matrix of two options (Heat),
// nights in a row (Lines), one trial task by task (Timeline), trials side by side
// (SideBySide), sums with their parts (Stacked) and the useful work of batch jobs
// with time (Work).
//
// A chart is a value without behaviour of its own. It draws itself once, on a
// surface, and there are two: SVG for the page, where colours follow the
// reader's light or dark setting and hovering tells the exact number, and paper,
// which is gonum/plot's canvas, for PNGs and places that take no page. So both
// have one layout, one scale and one palette. A class names what an element
// looks like: look.go says it for paper, the page's style sheet for the page.
//
// Every chart draws whatever it is given: nothing at all, one sample, equal
// samples, zeros. Numbers that are not finite are left out. Equal charts give
// equal bytes.
//
// Colours are those of Okabe and Ito, which people with any colour vision can
// tell apart; shapes and words say the same once more. Text has a contrast of at
// least 4.5 to what it stands on.
package chart
