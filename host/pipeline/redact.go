package pipeline

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// redacted stands where a secret would have been told.
const redacted = "[REDACTED]"

// Redactor takes secrets out of texts before anybody reads them. Secrets are
// kept out of texts in the first place; this is what still holds when a
// module logs the value it was granted, or a server quotes it in its answer.
type Redactor struct {
	mu    sync.RWMutex
	forms []string // the spellings of all secrets, longest first
}

// minSecret is the length below which a value is left alone: to black out
// every "1" of a table would hide nothing and destroy the answer.
const minSecret = 4

// Add learns a secret in the spellings in which output can hold it.
func (r *Redactor) Add(secret string) {
	if len(secret) < minSecret {
		return
	}
	forms := []string{secret, quoted(secret), strings.ReplaceAll(secret, "'", "''"), strings.ReplaceAll(secret, `"`, `""`), url.QueryEscape(secret), url.PathEscape(secret)}
	if text, err := json.Marshal(secret); err == nil {
		forms = append(forms, string(text[1:len(text)-1]))
	}
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if enc.Encode(secret) == nil {
		forms = append(forms, strings.Trim(strings.TrimSpace(plain.String()), `"`))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range forms {
		if len(f) >= minSecret && !slices.Contains(r.forms, f) {
			r.forms = append(r.forms, f)
		}
	}
	slices.SortFunc(r.forms, func(a, b string) int { return len(b) - len(a) })
}

func quoted(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// Redact gives the text without secrets.
func (r *Redactor) Redact(text string) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, f := range r.forms {
		text = strings.ReplaceAll(text, f, redacted)
	}
	return text
}

// Writer gives a writer that passes on what it is given without secrets, also
// when one arrives in pieces. Flush it at the end.
func (r *Redactor) Writer(w io.Writer) *RedactingWriter { return &RedactingWriter{r: r, w: w} }

// RedactingWriter is safe for concurrent use.
type RedactingWriter struct {
	r    *Redactor
	mu   sync.Mutex
	w    io.Writer
	kept []byte // an end that could be the beginning of a secret
}

// Write implements io.Writer.
func (w *RedactingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept) == 0 && !w.r.any() {
		return w.w.Write(p)
	}
	text := w.r.Redact(string(append(w.kept, p...)))
	keep := w.r.beginning(text)
	w.kept = append(w.kept[:0], text[len(text)-keep:]...)
	if _, err := io.WriteString(w.w, text[:len(text)-keep]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Below gives the writer that takes the text.
func (w *RedactingWriter) Below() io.Writer { return w.w }

// Flush writes what is left.
func (w *RedactingWriter) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.r.Redact(string(w.kept))
	w.kept = w.kept[:0]
	_, err := io.WriteString(w.w, text)
	return err
}

func (r *Redactor) any() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.forms) > 0
}

// beginning gives the length of the text's end that a secret could begin with.
func (r *Redactor) beginning(text string) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	longest := 0
	for _, f := range r.forms {
		for n := min(len(f)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, f[:n]) {
				longest = n
				break
			}
		}
	}
	return longest
}
