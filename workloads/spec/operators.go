package spec

// Kind is the role of an operator in a job.
type Kind string

// Kinds of operators.
const (
	Source    Kind = "source"
	Transform Kind = "transform"
	TwoInput  Kind = "two-input"
	Sink      Kind = "sink"
)

// Inputs is the number of inputs that an operator of the kind has.
func (k Kind) Inputs() int {
	switch k {
	case Source:
		return 0
	case TwoInput:
		return 2
	}
	return 1
}

// Operator describes one operator of the catalogue.
type Operator struct {
	Name   string
	Kind   Kind
	Keyed  bool // needs its input partitioned by key
	Proves bool // a sink that shows what arrived
	Params []Param
	Help   string
	// Batch says what differs in batch mode; BatchOnly that there is nothing else.
	Batch     string
	BatchOnly bool
}

// Param describes one parameter of an operator.
type Param = Key

// ParamType is the type of a key's value.
type ParamType string

// Types of keys.
const (
	ParamRate     ParamType = "rate"
	ParamCount    ParamType = "whole number"
	ParamFloat    ParamType = "number"
	ParamSize     ParamType = "size"
	ParamDuration ParamType = "duration"
	ParamBool     ParamType = "bool"
	ParamString   ParamType = "string"
	ParamStrings  ParamType = "list of strings"
	ParamIndex    ParamType = "number from 0, or random"
	ParamShare    ParamType = "number, or a range [low, high]"
	ParamTable    ParamType = "table"
	ParamTables   ParamType = "list of tables"
)

// MinRecordSize is the smallest record-size: the serialised header of a record
// without any payload.
const MinRecordSize = 44

var (
	costParams = []Param{
		{Name: "cost", Type: ParamDuration, Default: "0s", Help: "time that each record takes, recovered records included"},
		{Name: "cost-kind", Type: ParamString, Default: "wait", Words: []string{"wait", "cpu"}, Help: "wait: the time is slept off; cpu: the time is burnt"},
	}
	stateParam = Param{Name: "state-size", Type: ParamSize, Default: "0B", Help: "bytes of state per key, filled with a pattern that is checked at restore"}
)

func transform(name, help string, params ...Param) Operator {
	return Operator{Name: name, Kind: Transform, Params: append(params, costParams...), Help: help}
}

func keyed(o Operator) Operator {
	o.Keyed = true
	o.Params = append(o.Params, stateParam)
	return o
}

func inBatch(what string, o Operator) Operator {
	o.Batch = what
	return o
}

func twoInput(name, help string) Operator {
	return Operator{Name: name, Kind: TwoInput, Params: append([]Param(nil), costParams...), Help: help}
}

func sink(name, help string, proves bool, params ...Param) Operator {
	return Operator{Name: name, Kind: Sink, Proves: proves, Params: append(params, costParams...), Help: help}
}

var operators = []Operator{
	{Name: "sequence", Kind: Source, Help: "numbers 0, 1, 2, ... with a key and a payload; event time is the number in ms", Params: []Param{
		{Name: "rate", Type: ParamRate, Help: "records per second of the whole vertex, such as \"50000/s\", on schedule whatever the job does; without it: as fast as it goes"},
		{Name: "records", Type: ParamCount, Default: "0", Help: "records of the whole vertex; 0: unbounded, which a batch job cannot be"},
		{Name: "record-size", Type: ParamSize, Default: "128B", Low: "44B", High: "16MiB", Help: "serialised bytes of a record, its header included"},
		{Name: "keys", Type: ParamCount, Default: "1000", Low: "1", High: "1099511627776", Help: "distinct keys"},
		{Name: "key-skew", Type: ParamFloat, Default: "0", Low: "0", High: "100", Help: "exponent of a bounded Zipf distribution of the keys; 0: uniform"},
		{Name: "splits", Type: ParamCount, Default: "64", Low: "1", High: "1048576", Help: "splits; split s of S emits s, s+S, s+2S, ..."},
	}},
	{Name: "lines", Kind: Source, Help: "the lines of text files", Params: []Param{
		{Name: "paths", Type: ParamStrings, Required: true, Help: "patterns of files; ** stands for any number of folders"},
		{Name: "loop", Type: ParamBool, Default: "false", Help: "start over when all files were read"},
	}},
	transform("map", "passes each record on"),
	transform("filter", "passes a share of the records on, chosen by their number",
		Param{Name: "keep", Type: ParamFloat, Default: "0.5", Low: "0", High: "1", Help: "share that passes, 0 to 1"}),
	transform("flat-map", "emits several copies of each record",
		Param{Name: "fan-out", Type: ParamCount, Default: "2", Low: "1", High: "1048576", Help: "copies"}),
	transform("split-words", "cuts lines into words; the word is the key"),
	keyed(transform("keyed-sum", "running sum of the numbers by key")),
	inBatch("one count a key, at the end", keyed(transform("count-by-key", "running count by key"))),
	inBatch("all windows are emitted at the end", keyed(transform("window-sum", "sum by key and tumbling window of event time",
		Param{Name: "size", Type: ParamDuration, Default: "1s", Low: "1ms", Help: "width of a window in event time"}))),
	keyed(twoInput("join", "pairs the records of both inputs with equal key and number, each pair once")),
	twoInput("co-map", "passes the records of both inputs on"),
	twoInput("broadcast-map", "passes the records of input 1 on, with a state that input 2 broadcasts"),
	{Name: "sort", Kind: Transform, Params: costParams, BatchOnly: true, Help: "sorts by key, on disk where memory is short"},
	sink("verify-sink", "counts every arrival and keeps what it saw as checkpointed state", true),
	inBatch("each attempt writes files of its own; those of the attempt that counts are committed when it has finished",
		sink("file-sink", "writes files with two-phase commit; verified by reading what was committed", true,
			Param{Name: "path", Type: ParamString, Default: "", Help: "folder of the files; default: inside the trial's folder"})),
	sink("discard", "throws records away; proves nothing", false),
}

// Operators lists the catalogue in the order of the documentation.
func Operators() []Operator { return append([]Operator(nil), operators...) }

// LookupOperator finds an operator by its name.
func LookupOperator(name string) (Operator, bool) {
	for _, o := range operators {
		if o.Name == name {
			return o, true
		}
	}
	return Operator{}, false
}

var partitioners = []string{"hash", "rebalance", "rescale", "forward", "broadcast", "shuffle", "global", "custom"}

// Partitioners lists the legal partitioners of an edge.
func Partitioners() []string { return append([]string(nil), partitioners...) }
