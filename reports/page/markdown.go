package page

import (
	"fmt"
	"slices"
	"strings"
)

// markdown is the summary for pull requests and job pages.
func markdown(v *view) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", escapeMarkdown(v.Title))
	fmt.Fprintf(&b, "%s\n\n", escapeMarkdown(strings.Join(v.Subtitle, " · ")))
	if !v.Complete {
		fmt.Fprintf(&b, "**The run is not complete (%s).**\n\n", escapeMarkdown(v.State))
	}
	bullets(&b, v.Warnings)
	for _, w := range v.Workloads {
		fmt.Fprintf(&b, "## %s\n\n", escapeMarkdown(w.Name))
		for _, h := range w.Headline {
			fmt.Fprintf(&b, "%s ", escapeMarkdown(h))
		}
		b.WriteString("\n\n")
		markdownTable(&b, w.Results, "cell")
		for _, t := range []*table{w.Verdicts, w.Batch, w.RecoveryCost} {
			if t != nil {
				markdownTable(&b, t, "cell")
			}
		}
		if w.Limits != nil {
			markdownTable(&b, w.Limits, "cell")
		}
		if len(w.Warnings) > 0 {
			b.WriteString("Warnings:\n\n")
			bullets(&b, w.Warnings)
		}
		b.WriteString("Reproduce a cell:\n\n```\n")
		for _, c := range w.Commands {
			b.WriteString(c.Value + "\n")
		}
		b.WriteString("```\n\n")
	}
	if !slices.ContainsFunc(v.Workloads, func(w *workloadView) bool { return w.spec.Mode != "batch" }) {
		return b.String()
	}
	b.WriteString("RUNNING means different things with different options: with neither R nor D it comes early and the first checkpoint late, with R alone when everything restored has been processed, with D at once. Read it beside the other two times.\n")
	return b.String()
}

func bullets(b *strings.Builder, lines []string) {
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", escapeMarkdown(l))
	}
	if len(lines) > 0 {
		b.WriteString("\n")
	}
}

func markdownTable(b *strings.Builder, t *table, first string) {
	fmt.Fprintf(b, "%s\n\n| %s |", escapeMarkdown(t.Caption), first)
	for _, h := range t.Head {
		text := h.Text
		if strings.HasPrefix(h.Sub, "seconds") {
			text += " (s)"
		}
		fmt.Fprintf(b, " %s |", escapeMarkdown(text))
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(t.Head)) + "\n")
	for _, r := range t.Rows {
		if r.Group != "" {
			name := "**" + escapeMarkdown(r.Group) + "**"
			if r.Note != "" {
				name += " (" + escapeMarkdown(r.Note) + ")"
			}
			fmt.Fprintf(b, "| %s |%s\n", name, strings.Repeat(" |", len(t.Head)))
			continue
		}
		fmt.Fprintf(b, "| %s |", escapeMarkdown(r.Label))
		for _, c := range r.Cells {
			text := c.Text
			if c.Sub != "" {
				text += " (" + c.Sub + ")"
			}
			fmt.Fprintf(b, " %s |", escapeMarkdown(text))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

var markdownEscapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`, "]", `\]`, "\n", " ", "\r", " ")

func escapeMarkdown(s string) string { return markdownEscapes.Replace(s) }

// summaryLimit is what a step summary of GitHub may have; the rest is not
// shown at all.
const summaryLimit = 1 << 20

// limited cuts a text that is too long for a step summary, at the end of a
// line, and says so.
func limited(s string) string {
	if len(s) <= summaryLimit {
		return s
	}
	const word = "\n**Cut here: the summary is longer than 1 MiB. The page has all of it.**\n"
	s = s[:summaryLimit-len(word)]
	if i := strings.LastIndexByte(s, '\n'); i > 0 {
		s = s[:i+1]
	}
	return strings.ToValidUTF8(s, "") + word
}
