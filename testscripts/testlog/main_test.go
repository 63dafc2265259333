package main

import (
	"strings"
	"testing"
)

func TestSkipsAndFailuresAreTold(t *testing.T) {
	in := strings.Join([]string{
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: no clang here\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"chatter\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestB"}`,
		`{"Action":"output","Package":"p","Output":"PASS\n"}`,
		`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
		`{"Action":"pass","Package":"p"}`,
		`{"Action":"output","Package":"q","Test":"TestC","Output":"    c_test.go:9: wrong\n"}`,
		`{"Action":"fail","Package":"q","Test":"TestC"}`,
		`{"Action":"output","Package":"q","Output":"FAIL\tq\t0.1s\n"}`,
		`{"Action":"fail","Package":"q"}`,
		`# r: not JSON`,
	}, "\n")
	want := "ok  \tp\t0.1s\n    c_test.go:9: wrong\nFAIL\tq\t0.1s\n# r: not JSON" + "SKIPPED p TestA: a_test.go:3: no clang here\n"
	var out strings.Builder
	if err := report(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Fatalf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// A process that dies ends no test; what it said last is told.
func TestTheLastWordsOfAPackageAreTold(t *testing.T) {
	in := strings.Join([]string{
		`{"Action":"output","Package":"p","Test":"TestA","Output":"done\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"panic: boom\n"}`,
		`{"Action":"output","Package":"other","Test":"TestC","Output":"still at it\n"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
		`{"Action":"fail","Package":"p"}`,
	}, "\n")
	var out strings.Builder
	if err := report(strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if want := "FAIL\tp\t0.1s\npanic: boom\n"; out.String() != want {
		t.Fatalf("got %q, want %q", out.String(), want)
	}
}
