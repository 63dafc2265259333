package weir

// flow is one declared flow.
type flow struct {
	name       string
	typ        string
	target     string
	function   string
	source     string
	options    map[string]string // of the stream of source
	once       bool
	onRowError string
	cdc        AutoCDC
}

// AppendFlow adds a flow to a table or sink, so that several sources fill it without a UNION. fn may
// be nil for a dataset that is appended as it is.
func AppendFlow(target, name string, from Source, fn Func, options ...Option) {
	f := &flow{name: name, typ: "append", target: target}
	d := &declaration{who: "AppendFlow " + name + " into " + target, flow: f}
	if fn == nil && len(options) == 0 && from.dataset != "" && !from.hasColumns {
		from.check(&registered, d.who)
		f.source, f.options = from.dataset, from.options
		f.once = from.mode == "batch"
		registered.addFlow(f)
		return
	}
	d.function = &function{name: registered.freeName(name, target), kind: "map", inputs: []Source{from}, run: fn}
	d.apply(options)
	if from.mode == "batch" && !f.once {
		d.wrong("a batch source is loaded one time: add Once, or read it with ReadStream")
	}
	f.function = registered.addFunction(d.who, d.function)
	registered.addFlow(f)
}

// Once loads a batch source one time; it runs again only on a full refresh.
func Once() Option {
	return Option{"Once", func(d *declaration) bool {
		if d.flow == nil {
			return false
		}
		d.flow.once = true
		return true
	}}
}

// AutoCDC describes a flow that applies changes in the order of a sequence. Its fields are the
// parameters of create_auto_cdc_flow; expressions are SQL.
type AutoCDC struct {
	Target           string
	Source           string            // name of the dataset or view that the changes stream from
	SourceOptions    map[string]string // of the stream, such as readChangeFeed
	Name             string            // of the flow; the target's when empty
	Keys             []string
	SequenceBy       string // decides alone which of two changes to a key wins; strictly increasing per key
	ApplyAsDeletes   string
	ApplyAsTruncates string // SCD type 1 only

	// At most one of three: a NULL in any column, in those named, or in all but
	// those named keeps the value there is.
	IgnoreNullUpdates                 bool
	IgnoreNullUpdatesColumnList       []string
	IgnoreNullUpdatesExceptColumnList []string

	ColumnList       []string
	ExceptColumnList []string

	// TiesLastBy names columns of the source. Of two changes of a key with the same
	// sequence the one with the higher values wins; without it they fail the flow.
	TiesLastBy []string

	StoredAsSCDType              int // 1 or 2; 1 when 0
	TrackHistoryColumnList       []string
	TrackHistoryExceptColumnList []string

	Once       bool
	OnRowError RowErrorPolicy
}

// CreateAutoCDCFlow declares the flow; its target is declared with [CreateStreamingTable].
func CreateAutoCDCFlow(cdc AutoCDC) {
	who := "CreateAutoCDCFlow into " + cdc.Target
	if cdc.Source == "" {
		registered.wrong(who + ": needs a Source")
	}
	if cdc.SequenceBy == "" && lower(cdc.SourceOptions["readChangeFeed"]) != "true" {
		registered.wrong(who + ": needs SequenceBy")
	}
	checkIgnoreNulls(who, cdc)
	if cdc.ColumnList != nil && cdc.ExceptColumnList != nil {
		registered.wrong(who + ": has ColumnList and ExceptColumnList; give one of them")
	}
	if cdc.StoredAsSCDType == 2 && cdc.ApplyAsTruncates != "" {
		registered.wrong(who + ": ApplyAsTruncates is for SCD type 1")
	}
	checkCDC(who, cdc)
	registered.addFlow(&flow{name: cdc.Name, typ: "auto_cdc", target: cdc.Target, source: cdc.Source, options: cdc.SourceOptions,
		once: cdc.Once, onRowError: string(cdc.OnRowError), cdc: cdc})
}

// AutoCDCFromSnapshot describes a flow that compares consecutive full snapshots: a key that is gone
// was deleted.
type AutoCDCFromSnapshot struct {
	Target string
	Source string // dataset that holds the latest snapshot; or else
	// Provider gives the next snapshot after Context.LatestVersion: it calls SnapshotVersion and
	// writes the rows, or SnapshotDone when it has caught up.
	Provider       Func
	ProviderInputs []Source
	ProviderOutput []ColumnDef
	ProviderConf   []string
	// ProviderVersion is the type of its versions: int, string, float, bytes, date, timestamp or
	// decimal(p,s). Type 2 needs it, for __START_AT and __END_AT.
	ProviderVersion string

	Name                         string
	Keys                         []string
	StoredAsSCDType              int
	TrackHistoryColumnList       []string
	TrackHistoryExceptColumnList []string
}

// CreateAutoCDCFromSnapshotFlow declares the flow; its target is declared with [CreateStreamingTable].
func CreateAutoCDCFromSnapshotFlow(cdc AutoCDCFromSnapshot) {
	who := "CreateAutoCDCFromSnapshotFlow into " + cdc.Target
	if (cdc.Source == "") == (cdc.Provider == nil) {
		registered.wrong(who + ": needs either a Source or a Provider")
	}
	shared := AutoCDC{Target: cdc.Target, Keys: cdc.Keys, StoredAsSCDType: cdc.StoredAsSCDType,
		TrackHistoryColumnList: cdc.TrackHistoryColumnList, TrackHistoryExceptColumnList: cdc.TrackHistoryExceptColumnList}
	checkCDC(who, shared)
	f := &flow{name: cdc.Name, typ: "auto_cdc_from_snapshot", target: cdc.Target, source: cdc.Source, cdc: shared}
	if cdc.Provider != nil {
		name := cdc.Name
		if name == "" {
			name = cdc.Target
		}
		fn := &function{name: registered.freeName(name, cdc.Target), kind: "snapshot", run: cdc.Provider,
			inputs: cdc.ProviderInputs, output: cdc.ProviderOutput, outputSet: cdc.ProviderOutput != nil, conf: cdc.ProviderConf, version: cdc.ProviderVersion}
		f.function = registered.addFunction(who, fn)
	}
	registered.addFlow(f)
}

func checkCDC(who string, cdc AutoCDC) {
	if len(cdc.Keys) == 0 {
		registered.wrong(who + ": needs Keys")
	}
	if cdc.StoredAsSCDType < 0 || cdc.StoredAsSCDType > 2 {
		registered.wrong(who + ": StoredAsSCDType is " + itoa(int64(cdc.StoredAsSCDType)) + ", not 1 or 2")
	}
	if cdc.TrackHistoryColumnList != nil && cdc.TrackHistoryExceptColumnList != nil {
		registered.wrong(who + ": has TrackHistoryColumnList and TrackHistoryExceptColumnList; give one of them")
	}
	if cdc.StoredAsSCDType != 2 && (cdc.TrackHistoryColumnList != nil || cdc.TrackHistoryExceptColumnList != nil) {
		registered.wrong(who + ": TrackHistory… is for SCD type 2")
	}
}

func checkIgnoreNulls(who string, cdc AutoCDC) {
	forms := 0
	if cdc.IgnoreNullUpdates {
		forms++
	}
	if cdc.IgnoreNullUpdatesColumnList != nil {
		forms++
	}
	if cdc.IgnoreNullUpdatesExceptColumnList != nil {
		forms++
	}
	if forms > 1 {
		registered.wrong(who + ": says in more than one way which nulls are ignored; give one of IgnoreNullUpdates, IgnoreNullUpdatesColumnList and IgnoreNullUpdatesExceptColumnList")
	}
	if cdc.IgnoreNullUpdatesColumnList != nil && len(cdc.IgnoreNullUpdatesColumnList) == 0 {
		registered.wrong(who + ": IgnoreNullUpdatesColumnList is empty")
	}
	if cdc.TiesLastBy != nil && len(cdc.TiesLastBy) == 0 {
		registered.wrong(who + ": TiesLastBy is empty")
	}
}

// freeName gives a function its flow's name, or one with the target where that is taken.
func (r *registry) freeName(name, target string) string {
	for _, f := range r.functions {
		if f.name == name {
			return target + "/" + name
		}
	}
	return name
}

func (r *registry) addFlow(f *flow) {
	if f.target == "" {
		r.wrong("flow " + f.name + ": needs a target")
	}
	r.flows = append(r.flows, f)
}

// checkReferences finds what only shows once everything is declared.
func (r *registry) checkReferences() {
	for i, f := range r.flows {
		for _, o := range r.flows[:i] {
			if lower(o.target) == lower(f.target) && lower(o.flowName()) == lower(f.flowName()) {
				r.wrong("target " + f.target + " has two flows of the name " + f.flowName())
			}
		}
		for _, d := range r.datasets {
			if lower(d.name) == lower(f.target) && d.typ != "streaming_table" && d.typ != "sink" {
				r.wrong("flow " + f.flowName() + " writes to " + d.name + ", which is a " + d.typ)
			}
		}
	}
}

//go:noinline
func (f *flow) flowName() string {
	if f.name == "" {
		return f.target
	}
	return f.name
}

func (f *flow) write(w *jsonWriter) {
	c := &f.cdc
	w.open('{')
	w.text("name", f.name)
	w.text("type", f.typ)
	w.text("target", f.target)
	w.text("function", f.function)
	w.text("source", f.source)
	w.texts("source_options", f.options)
	w.flag("once", f.once)
	w.text("on_row_error", f.onRowError)
	w.list("keys", c.Keys)
	w.text("sequence_by", c.SequenceBy)
	w.text("apply_as_deletes", c.ApplyAsDeletes)
	w.text("apply_as_truncates", c.ApplyAsTruncates)
	w.flag("ignore_null_updates", c.IgnoreNullUpdates)
	w.list("ignore_null_updates_column_list", c.IgnoreNullUpdatesColumnList)
	w.list("ignore_null_updates_except_column_list", c.IgnoreNullUpdatesExceptColumnList)
	w.list("ties_last_by", c.TiesLastBy)
	w.list("column_list", c.ColumnList)
	w.list("except_column_list", c.ExceptColumnList)
	if c.StoredAsSCDType != 0 {
		w.number("stored_as_scd_type", int64(c.StoredAsSCDType))
	}
	w.list("track_history_column_list", c.TrackHistoryColumnList)
	w.list("track_history_except_column_list", c.TrackHistoryExceptColumnList)
	w.close('}')
}
