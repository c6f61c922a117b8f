package spec

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
)

// params reads the parameters of an operator.
func (d *decoder) params(op Operator, n *node, vertex *section) Params {
	if n != nil && n.form == tableForm {
		n = d.expand(n, vertex.path+".params")
	}
	s := d.r.section(n, vertex.path+".params", op.Params...)
	var p Params
	for _, def := range op.Params {
		d.param(s, vertex, def, &p)
	}
	s.close()
	return p
}

func (d *decoder) param(s, vertex *section, def Param, p *Params) {
	if def.Required && !s.has(def.Name) {
		s.known = append(s.known, def.Name)
		vertex.fail("params", fmt.Sprintf("the parameter %q is missing", def.Name), def.Help)
		return
	}
	switch def.Name {
	case "rate":
		p.Rate = s.rate(def.Name)
	case "records":
		p.Records = s.integer(def.Name)
	case "record-size":
		p.RecordSize = s.size(def.Name)
	case "keys":
		p.Keys = s.integer(def.Name)
	case "key-skew":
		p.KeySkew = s.number(def.Name)
	case "splits":
		p.Splits = int(s.integer(def.Name))
	case "paths":
		for _, x := range s.strings(def.Name) {
			p.Paths = append(p.Paths, d.absolute(x))
		}
		if s.has(def.Name) && s.n.get(def.Name).form == listForm && len(s.n.get(def.Name).items) == 0 {
			s.fail(def.Name, "must name at least one file", "")
		}
	case "loop":
		p.Loop = s.boolean(def.Name)
	case "keep":
		p.Keep = s.number(def.Name)
	case "fan-out":
		p.FanOut = int(s.integer(def.Name))
	case "size":
		p.Size = s.duration(def.Name)
		if p.Size%time.Millisecond != 0 {
			s.fail(def.Name, "must be a whole number of milliseconds", "")
		}
	case "path":
		if x := s.str(def.Name); x != "" {
			p.Path = d.absolute(x)
		}
	case "cost":
		p.Cost = s.duration(def.Name)
	case "cost-kind":
		p.CostKind = s.str(def.Name)
	case "state-size":
		p.StateSize = s.size(def.Name)
	}
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand returns a copy of a table with environment variables put into its
// strings.
func (d *decoder) expand(n *node, path string) *node {
	c := n.clone()
	for _, k := range c.keys {
		c.table[k] = d.expandValue(c.table[k], path+"."+quoteSegment(k))
	}
	return c
}

func (d *decoder) expandValue(v *node, key string) *node {
	if v.form == listForm {
		for i := range v.items {
			v.items[i] = d.expandValue(v.items[i], key)
		}
		return v
	}
	text, ok := v.scalar.(string)
	if !ok || !strings.Contains(text, "${") {
		return v
	}
	out := variable.ReplaceAllStringFunc(text, func(m string) string {
		name, def, hasDefault := strings.Cut(m[2:len(m)-1], ":-")
		if !variableName.MatchString(name) {
			d.r.add(v.at.problem(key, v.show(), fmt.Sprintf("%q is no name of an environment variable", name), "write ${NAME} or ${NAME:-default}"))
			return ""
		}
		if x, ok := os.LookupEnv(name); ok && (x != "" || !hasDefault) {
			return x
		}
		if hasDefault {
			return def
		}
		if name == "GOROOT" {
			if root := goroot(); root != "" {
				return root
			}
		}
		d.r.add(v.at.problem(key, v.show(), fmt.Sprintf("the environment variable %s is not set", name), fmt.Sprintf("set it, or write ${%s:-default}", name)))
		return ""
	})
	if strings.Contains(variable.ReplaceAllString(text, ""), "${") {
		d.r.add(v.at.problem(key, v.show(), "a ${ has no closing }", ""))
	}
	c := *v
	c.scalar = out
	return &c
}

// goroot asks the go command, once.
var goroot = sync.OnceValue(func() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})
