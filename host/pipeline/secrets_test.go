package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-data/weir/host/fault"
)

// covers A140
func TestSecretsComeFromTheEnvironmentOrAFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "secrets.yaml")
	write := func(text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("kafka:\n  user-name: from-file\n  number: 0012\n  both: from-file\n", 0o600)
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"WEIR_SECRET_KAFKA_BOTH": "from-env", "WEIR_SECRET_A_B_C_D": "dots"}[name]
		return v, ok
	}
	text := "name: p\nstorage: s\nsecrets: {file: " + file + "}\nconfiguration: {user: '{{secrets/kafka/user-name}}', sap.user: '{{ secrets/kafka/both }}@x', plain: '{{x}}'}\n"
	s, err := parseSpec("/project/weir.yaml", []byte(text), nil, env)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"{{secrets/kafka/user-name}}":                           "from-file",
		`u="{{secrets/kafka/both}}" n={{secrets/kafka/number}}`: `u="from-env" n=0012`,
		"{{ secrets/a.b/c-d }}":                                 "dots",
		"{{secret/a/b}} ${x}":                                   "{{secret/a/b}} ${x}",
	} {
		if got, err := s.secrets.reveal(text); err != nil || got != want {
			t.Errorf("%s is %q (%v)", text, got, err)
		}
	}
	conf, err := s.granted([]string{"sap.*"})
	if err != nil || len(conf) != 1 || conf["sap.user"] != "from-env@x" {
		t.Errorf("%v, %v", conf, err)
	}
	if s.Configuration["user"] != "{{secrets/kafka/user-name}}" {
		t.Errorf("the configuration holds %q", s.Configuration["user"])
	}
	_, err = s.secrets.reveal("{{secrets/kafka/nope}}")
	wantFault(t, err, "SECRET_NOT_FOUND", "WEIR_SECRET_KAFKA_NOPE", file)

	write("kafka: {a: b}\n", 0o644)
	_, err = parseSpec("/project/weir.yaml", []byte(text), nil, env)
	wantFault(t, err, "SECRETS_EXPOSED", "0644", "chmod 600", "line 3")
	for _, bad := range []string{"canary", "- canary\n", "a: canary\n", "a: {b: [canary]}\n", "a: {b: canary\n", "a: {b: *canary}\n", "a: {b: &canary c}\n", "a: !canary {b: c}\n"} {
		write(bad, 0o600)
		_, err = parseSpec("/project/weir.yaml", []byte(text), nil, env)
		if fault.CodeOf(err) != "INVALID_SPEC" || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// covers A140
func TestASecretStandsNowhereInAQuery(t *testing.T) {
	for _, sql := range []string{
		"CREATE OR REFRESH STREAMING TABLE orders AS SELECT '{{secrets/a/b}}' AS x FROM STREAM read_files('./landing', format => 'json');",
		"CREATE OR REFRESH STREAMING TABLE orders AS SELECT '${key}' AS x FROM STREAM read_files('./landing', format => 'json');",
		"CREATE OR REFRESH STREAMING TABLE orders (CONSTRAINT c EXPECT (x = '${key}')) AS SELECT * FROM STREAM read_files('./landing', format => 'json');",
		"CREATE OR REFRESH STREAMING TABLE orders COMMENT '${key}' AS SELECT * FROM STREAM read_files('./landing', format => 'json');",
		"CREATE OR REFRESH STREAMING TABLE orders TBLPROPERTIES ('a' = '${key}') AS SELECT * FROM STREAM read_files('./landing', format => 'json');",
		"CREATE OR REFRESH STREAMING TABLE orders AS SELECT * FROM STREAM read_files('./${key}', format => 'json');",
	} {
		p := newProject(t, "configuration: {key: '{{secrets/a/b}}'}")
		t.Setenv("WEIR_SECRET_A_B", "canary-5d1f")
		p.write("sql/a.sql", sql)
		p.write("landing/a.json", "{}\n")
		_, err := p.tryOpen()
		wantFault(t, err, "SECRET_NOT_ALLOWED", "a.sql, line 1")
		if strings.Contains(err.Error(), "canary") {
			t.Error(err)
		}
	}
}

// However a secret is spelled and cut into pieces, what is written does not hold it.
//
// covers A140
func TestWhatIsWrittenHoldsNoSecret(t *testing.T) {
	secrets := []string{"hunter22", `p"a'ss\w<o>rd&`, "two\nlines", "hunter22-longer", "aaaa", "aaab", "ä-ö-ü"}
	r := &Redactor{}
	for _, s := range secrets {
		r.Add(s)
	}
	r.Add("no") // too short: "no" is in every text
	var text strings.Builder
	for _, s := range secrets {
		asJSON, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "not %s, %s %q '%s' aaa\n", s, asJSON, s, strings.ReplaceAll(s, "'", "''"))
	}
	for _, size := range []int{1, 2, 3, 7, 1 << 20} {
		var out bytes.Buffer
		w := r.Writer(&out)
		for rest := text.String(); rest != ""; {
			n := min(size, len(rest))
			if _, err := io.WriteString(w, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		for _, s := range secrets {
			for _, form := range []string{s, strings.Trim(strconv.Quote(s), `"`)} {
				if strings.Contains(got, form) {
					t.Errorf("in pieces of %d, %q is in %q", size, form, got)
				}
			}
		}
		if strings.Count(got, redacted) != 4*len(secrets) || strings.Count(got, "not ") != len(secrets) || !strings.HasSuffix(got, "aaa\n") {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}
