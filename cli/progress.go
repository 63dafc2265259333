package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/weir-data/weir/host/pipeline"
)

// progress tells on standard error how an update goes. On a terminal the last
// line is rewritten with each micro-batch; elsewhere only lines worth keeping
// are written.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	live  bool
	width int
	shown bool
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, live: isTerminal(w)}
	if p.live {
		p.width = terminalWidth(w)
	}
	return p
}

func (p *progress) observe(ev pipeline.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ev.Message != "" {
		p.keep(fmt.Sprintf("%s: %s", subject(ev), printable(ev.Message)))
		return
	}
	switch ev.State {
	case pipeline.Running:
		if ev.Batch >= 0 {
			did := fmt.Sprintf("%d rows written", ev.Metrics.RowsWritten)
			if c := ev.Metrics.Changes; c != nil {
				did = fmt.Sprintf("%d upserted, %d deleted", c.Upserted, c.Deleted)
			}
			p.show(fmt.Sprintf("%s: batch %d committed, %s", subject(ev), ev.Batch, did))
		}
	case pipeline.Completed, pipeline.Failed, pipeline.Skipped, pipeline.Canceled:
		if ev.Flow != "" {
			p.keep(fmt.Sprintf("%s: %s", subject(ev), ev.State))
		}
	}
}

// done removes the line that is still being rewritten.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *progress) keep(line string) {
	p.clear()
	fmt.Fprintln(p.w, line)
}

func (p *progress) show(line string) {
	if !p.live {
		return
	}
	if runes := []rune(line); len(runes) >= p.width {
		line = string(runes[:p.width-1])
	}
	p.clear()
	fmt.Fprint(p.w, line)
	p.shown = true
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func subject(ev pipeline.Progress) string {
	switch {
	case ev.Flow == "" || ev.Flow == ev.Dataset || strings.HasSuffix(ev.Dataset, "."+ev.Flow):
		if ev.Dataset == "" {
			return "update " + ev.UpdateID
		}
		return ev.Dataset
	default:
		return ev.Dataset + " (" + ev.Flow + ")"
	}
}
