package cloudtest

import (
	"crypto/md5" //nolint:gosec // the services' ETags are
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Bucket is the name of the one bucket, or container.
const Bucket = "lake"

// Fault is what happens to a request.
type Fault struct {
	// Status is answered instead of what would be; 0 answers nothing and cuts the connection.
	Status int
	// Code is the service's own name for the failure.
	Code string
	// Done makes the request first: the answer gets lost.
	Done bool
	// Torn answers right, but cuts the connection in the middle of the body.
	Torn bool
	// Body is answered with Status.
	Body string
}

// Server is a running store.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string]*object
	uploads map[string]*upload
	next    int64
	calls   []string
	fault   func(r *http.Request) *Fault
	deaf    bool
}

// object is one version of an object.
type object struct {
	data       []byte
	mod        time.Time
	etag       string
	generation int64
	meta       map[string]string
}

// upload is one in parts, invisible until it is completed.
type upload struct {
	key   string
	meta  map[string]string
	parts map[string][]byte
	when  condition
}

// condition says over which version a write may go.
type condition struct {
	absent     bool   // only where nothing is
	etag       string // only over this
	generation string // GCS: only over this; 0 is nothing
}

func (c condition) holds(o *object) bool {
	switch {
	case c.absent || c.generation == "0":
		return o == nil
	case c.etag != "":
		return o != nil && o.etag == c.etag
	case c.generation != "":
		return o != nil && strconv.FormatInt(o.generation, 10) == c.generation
	}
	return true
}

func newServer(handler func(*Server) http.HandlerFunc) *Server {
	s := &Server{objects: map[string]*object{}, uploads: map[string]*upload{}}
	s.Server = httptest.NewServer(s.faulty(handler(s)))
	return s
}

// forTest ends the server with the test, for which it sets the environment.
func (s *Server) forTest(t testing.TB, env map[string]string) *Server {
	t.Helper()
	t.Cleanup(s.Close)
	for k, v := range env {
		t.Setenv(k, v)
	}
	return s
}

// OnRequest sets what happens to requests; nil for one lets it pass.
func (s *Server) OnRequest(fault func(r *http.Request) *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// IgnoreConditions makes the store write whatever the conditions say, as some do.
func (s *Server) IgnoreConditions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = true
}

// Calls gives the requests so far, each as method and path with query, and forgets them.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// Names lists the keys, sorted.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Object gives the content of a key.
func (s *Server) Object(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if !ok {
		return nil, false
	}
	return o.data, true
}

// Put writes an object past the protocol.
func (s *Server) Put(key string, data []byte) { s.put(key, data, nil, condition{}) }

// Uploads counts the uploads in parts that were neither completed nor aborted.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

func (s *Server) faulty(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls = append(s.calls, r.Method+" "+r.URL.RequestURI())
		hook := s.fault
		s.mu.Unlock()
		var f *Fault
		if hook != nil {
			f = hook(r)
		}
		switch {
		case f == nil:
			next(w, r)
			return
		case f.Torn:
			next(&tearing{ResponseWriter: w}, r)
			panic(http.ErrAbortHandler)
		case f.Body != "":
			w.WriteHeader(f.Status)
			_, _ = io.WriteString(w, f.Body)
			return
		case f.Done:
			next(httptest.NewRecorder(), r)
		}
		_, _ = io.Copy(io.Discard, r.Body) // who is answered while still sending sees a broken connection
		if f.Status == 0 {
			panic(http.ErrAbortHandler) // cuts the connection
		}
		fail(w, r, f.Status, f.Code)
	}
}

// tearing lets half of a body through.
type tearing struct{ http.ResponseWriter }

func (t *tearing) Write(p []byte) (int, error) {
	_, _ = t.ResponseWriter.Write(p[:len(p)/2])
	return len(p), http.NewResponseController(t.ResponseWriter).Flush()
}

func fail(w http.ResponseWriter, r *http.Request, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	switch {
	case r.Method == http.MethodHead:
		w.WriteHeader(status)
	case strings.HasPrefix(r.URL.Path, "/storage/v1") || strings.HasPrefix(r.URL.Path, "/upload/"):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"error":{"code":%d,"message":%q}}`, status, code)
	default:
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, code)
	}
}

// put writes when the condition holds, all at once.
func (s *Server) put(key string, data []byte, meta map[string]string, when condition) (*object, bool) {
	sum := md5.Sum(data) //nolint:gosec // as the services do
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.deaf && !when.holds(s.objects[key]) {
		return nil, false
	}
	s.next++
	o := &object{
		data: data, mod: time.Now(), meta: meta, generation: s.next,
		// Unlike a real one, equal content has another tag each time: versions can be told apart.
		etag: fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(sum[:]), s.next),
	}
	s.objects[key] = o
	return o, true
}

func (s *Server) get(key string) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key]
}

func (s *Server) remove(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.objects[key]
	delete(s.objects, key)
	return ok
}

// page lists up to limit keys with a prefix, those behind after or from from on.
func (s *Server) page(prefix, after, from string, limit int) (keys []string, objects []*object, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(key, prefix) || after != "" && key <= after || key < from {
			continue
		}
		if len(keys) == limit {
			return keys, objects, true
		}
		keys = append(keys, key)
		objects = append(objects, s.objects[key])
	}
	return keys, objects, false
}

func (s *Server) begin(key string, meta map[string]string, when condition) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	id := fmt.Sprint("upload-", s.next)
	s.uploads[id] = &upload{key: key, meta: meta, when: when, parts: map[string][]byte{}}
	return id
}

func (s *Server) addPart(id, part string, data []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.uploads[id]
	if ok {
		u.parts[part] = append([]byte(nil), data...)
	}
	return ok
}

func (s *Server) end(id string) *upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uploads[id]
	delete(s.uploads, id)
	return u
}

// serve answers a read, of a range when one is asked for.
func serve(w http.ResponseWriter, r *http.Request, o *object, ranges string) {
	h := w.Header()
	h.Set("Last-Modified", o.mod.UTC().Format(http.TimeFormat))
	h.Set("ETag", o.etag)
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Type", "application/octet-stream")
	size := int64(len(o.data))
	from, to, status := int64(0), size, http.StatusOK
	if spec, ok := strings.CutPrefix(ranges, "bytes="); ok {
		first, last, _ := strings.Cut(spec, "-")
		if first == "" {
			n, _ := strconv.ParseInt(last, 10, 64)
			from = max(size-n, 0)
		} else {
			from, _ = strconv.ParseInt(first, 10, 64)
			if last != "" {
				end, _ := strconv.ParseInt(last, 10, 64)
				to = min(end+1, size)
			}
		}
		if from >= size {
			fail(w, r, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, size))
	}
	h.Set("Content-Length", strconv.FormatInt(to-from, 10))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(o.data[from:to])
	}
}
