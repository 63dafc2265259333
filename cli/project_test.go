package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestAMisspeltLogLevelIsTold(t *testing.T) {
	for value, want := range map[string]bool{"": false, "debug": false, "WARN": false, "loud": true} {
		t.Setenv("WEIR_LOG", value)
		var out bytes.Buffer
		logger(cli.NewContext(&cli.App{ErrWriter: &out}, nil, nil))
		if told := strings.Contains(out.String(), "WEIR_LOG"); told != want {
			t.Errorf("WEIR_LOG=%q: told %v: %s", value, told, &out)
		}
	}
}
