package pipeline

import (
	"testing"
)

const twoFlows = `CREATE OR REFRESH STREAMING TABLE events;
CREATE FLOW north AS INSERT INTO events BY NAME SELECT id, 'north' AS region FROM STREAM read_files('${landing}/north', format => 'json');
CREATE FLOW south AS INSERT INTO events BY NAME SELECT id, 'south' AS region FROM STREAM read_files('${landing}/south', format => 'json');
CREATE FLOW history AS INSERT INTO ONCE events BY NAME SELECT id, 'past' AS region FROM read_files('${landing}/past', format => 'json');
`

// covers A114 A115: streams and a backfill that runs once fill one table; only
// a full refresh reads again, and what it reads is what there is now.
func TestFlowsIntoOneTable(t *testing.T) {
	p := newProject(t, landingConf)
	p.write("sql/events.sql", twoFlows)
	p.write("landing/north/a.json", `{"id":1}`)
	p.write("landing/south/a.json", `{"id":2}`)
	p.write("landing/past/a.json", `{"id":3}`)
	all := "SELECT region, id FROM events ORDER BY id"
	p.completed(RunOptions{})
	p.wantRows(all, `{"region":"north","id":1}`, `{"region":"south","id":2}`, `{"region":"past","id":3}`)
	p.write("landing/north/b.json", `{"id":4}`)
	p.write("landing/past/b.json", `{"id":5}`)
	r := p.completed(RunOptions{})
	p.wantRows(all, `{"region":"north","id":1}`, `{"region":"south","id":2}`, `{"region":"past","id":3}`, `{"region":"north","id":4}`)
	for _, f := range r.Flows {
		if f.Flow == "history" && (f.Refresh == nil || f.Refresh.Reason != "ALREADY_RUN") {
			t.Errorf("%+v", f.Refresh)
		}
	}
	for range 3 {
		p.completed(RunOptions{FullRefreshAll: true})
		p.wantRows(all, `{"region":"north","id":1}`, `{"region":"south","id":2}`, `{"region":"past","id":3}`, `{"region":"north","id":4}`, `{"region":"past","id":5}`)
	}
}
