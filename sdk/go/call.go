package weir

import "github.com/weir-data/weir/sdk/go/internal/host"

// Func is a dataset function: it reads the inputs of one task to their end and writes the output. It
// must be deterministic: the clock reads the batch's timestamp, randomness is seeded by the batch.
//
// An error fails the flow, and nothing of the micro-batch is committed. Its text is what the user
// reads; begin it with a code, "[NO_PRICE] …".
type Func func(c *Call) error

// Call is one run of a function.
type Call struct {
	fn      *function
	inputs  []*Reader
	outputs []*Writer
	errs    stickyError
	context *Context
}

// LogLevel is the level of a log line.
type LogLevel int32

// Levels of log.
const (
	LogDebug LogLevel = iota
	LogInfo
	LogWarn
	LogError
)

func newCall(fn *function) *Call {
	c := &Call{fn: fn}
	for i := range fn.inputs {
		c.inputs = append(c.inputs, &Reader{index: i, errs: &c.errs})
	}
	for i := range max(1, len(fn.outputs)) {
		o := &Writer{index: i, columnSet: columnSet{errs: &c.errs}}
		if fn.outputSet && i == 0 {
			o.declared = true
			for _, f := range fn.output {
				o.columns = append(o.columns, newColumn(f.field, f.field.Name, &c.errs))
			}
		}
		c.outputs = append(c.outputs, o)
	}
	return c
}

// Input gives input i: 0 is the one the dataset was declared with, then those of [With] in order.
func (c *Call) Input(i int) *Reader {
	if i >= 0 && i < len(c.inputs) {
		return c.inputs[i]
	}
	c.errs.set(errorf("[NO_SUCH_INPUT] function ", c.fn.name, " has no input ", itoa(int64(i))))
	return &Reader{index: i, errs: &c.errs, done: true}
}

// Output gives the output.
func (c *Call) Output() *Writer { return c.outputs[0] }

// OutputTo gives output i of a function with several, in the order of [Into].
func (c *Call) OutputTo(i int) *Writer {
	if i >= 0 && i < len(c.outputs) {
		return c.outputs[i]
	}
	c.errs.set(errorf("[NO_SUCH_OUTPUT] function ", c.fn.name, " has no output ", itoa(int64(i))))
	return &Writer{index: i, columnSet: columnSet{errs: &c.errs}}
}

// Conf gives a configuration value that the function was declared to use with [UsesConf].
func (c *Call) Conf(key string) (string, bool) { return confGet(key) }

// ConfOr gives a configuration value, or the default when it is unset.
func (c *Call) ConfOr(key, def string) string {
	if v, ok := confGet(key); ok {
		return v
	}
	return def
}

func confGet(key string) (string, bool) {
	return hostText(func(p []byte) int32 { return host.ConfGet(key, p) })
}

// Metric adds to a metric of the user's own, summed over the flow's update.
func (c *Call) Metric(name string, value float64) { host.MetricAdd(name, value) }

// Log writes to the event log.
func (c *Call) Log(level LogLevel, text string) { host.Log(int32(level), text) }

// Fail makes the call fail with the error, whatever the function returns. The first one counts.
func (c *Call) Fail(err error) {
	if err != nil {
		c.errs.set(err)
	}
}

// State gives what the last committed micro-batch of a [Stateful] function left; nil at the first.
func (c *Call) State() []byte {
	text, ok := hostText(host.StateRead)
	if !ok || text == "" {
		return nil
	}
	return []byte(text)
}

// SetState hands over the new state, committed with the micro-batch or not at all.
func (c *Call) SetState(state []byte) error {
	if host.StateWrite(state) < 0 {
		return lastError("writing the state")
	}
	return nil
}

// SnapshotVersion says, before the first output of a snapshot provider, which version it gives.
func (c *Call) SnapshotVersion(v Version) error {
	w := jsonWriter{}
	w.open('{')
	w.key("version")
	v.write(&w)
	w.close('}')
	return c.result(w.buf)
}

// SnapshotDone says that there is no snapshot after the latest one.
func (c *Call) SnapshotDone() error { return c.result([]byte(`{"done":true}`)) }

func (c *Call) result(p []byte) error {
	if host.ResultWrite(p) < 0 {
		return lastError("writing a result")
	}
	return nil
}

// finish closes the outputs of a function that returned, and gives what the call failed with. An
// error recorded on the way comes first: what the function returned may only follow from it.
func (c *Call) finish(err error) error {
	if c.errs.err != nil {
		return c.errs.err
	}
	if err != nil {
		return err
	}
	for _, o := range c.outputs {
		if err := o.close(); err != nil {
			return err
		}
	}
	return c.errs.err
}
