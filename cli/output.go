package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/fault"
)

// outputFlag is --output; the first format is the default.
func outputFlag(formats ...string) cli.Flag {
	return &cli.StringFlag{
		Name: "output", Usage: "how to print: " + strings.Join(formats, ", "), Value: formats[0],
	}
}

func outputFormat(c *cli.Context, formats ...string) (string, error) {
	format := c.String("output")
	if !slices.Contains(formats, format) {
		return "", wrongUsage(fault.New("INVALID_ARGUMENT", "--output %q is not a format of %s", format, commandPath(c)).
			WithHint("Use one of %s", strings.Join(formats, ", ")))
	}
	return format, nil
}

// writeJSON writes v as one line.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// writeTable prints rows below a header, in columns as wide as their widest
// cell; columns listed in right are aligned to the right.
func writeTable(w io.Writer, header []string, rows [][]string, right ...int) error {
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	line := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			switch {
			case slices.Contains(right, i):
				b.WriteString(pad + cell)
			case i == len(row)-1:
				b.WriteString(cell)
			default:
				b.WriteString(cell + pad)
			}
		}
		b.WriteByte('\n')
	}
	line(header)
	for _, row := range rows {
		line(row)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printable replaces what could steer a terminal: data and messages of
// modules are shown, not obeyed.
func printable(s string) string {
	clean := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if strings.IndexFunc(s, clean) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// counted writes a number of things: 1 file, 2 files.
func counted[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
