package fault

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestErrorTellsCodePlaceCauseAndHint(t *testing.T) {
	err := Wrap(io.ErrUnexpectedEOF, "UNKNOWN_FIELD", "column %q is new", "gift_note").
		WithHint("Run again").At(Where{Dataset: "orders", File: "a.json", Line: 3}).At(Where{Dataset: "other", Flow: "f"})
	want := `[UNKNOWN_FIELD] orders: column "gift_note" is new (flow f, file a.json, line 3): unexpected EOF. Run again`
	if err.Error() != want {
		t.Fatalf("got  %s\nwant %s", err, want)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal("the cause is lost")
	}
}

func TestCodesAreFoundThroughWraps(t *testing.T) {
	inner := New("INNER", "x")
	outer := Wrap(fmt.Errorf("ctx: %w", inner), "OUTER", "y")
	wrapped := fmt.Errorf("top: %w", outer)
	if got := CodeOf(wrapped); got != "OUTER" {
		t.Fatalf("CodeOf = %q", got)
	}
	for code, want := range map[string]bool{"OUTER": true, "INNER": true, "NEITHER": false} {
		if Is(wrapped, code) != want {
			t.Fatalf("Is(%s) = %v", code, !want)
		}
	}
	if CodeOf(io.EOF) != "" || Is(io.EOF, "X") || Is(nil, "X") {
		t.Fatal("plain errors have no code")
	}
}

func TestPlaceKeepsWhatADeeperLayerSaid(t *testing.T) {
	deep := New("A", "x").At(Where{File: "deep"})
	err := Place(fmt.Errorf("w: %w", deep), "B", Where{File: "top", Flow: "f"})
	if CodeOf(err) != "A" || deep.Where.File != "deep" || deep.Where.Flow != "f" {
		t.Fatalf("%v %+v", err, deep.Where)
	}
	if got := Place(io.EOF, "B", Where{Flow: "f"}); CodeOf(got) != "B" || !errors.Is(got, io.EOF) {
		t.Fatal(got)
	}
	if Place(nil, "B", Where{}) != nil {
		t.Fatal("nil stays nil")
	}
}
