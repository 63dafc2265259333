package cloudtest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// GCS starts a Google Cloud Storage and sets the environment so that clients
// find it. Its folders are gs://lake/….
func GCS(t testing.TB) *Server {
	t.Helper()
	s := newServer(func(s *Server) http.HandlerFunc { return s.gcs })
	return s.forTest(t, map[string]string{"STORAGE_EMULATOR_HOST": strings.TrimPrefix(s.URL, "http://")})
}

// gcsObject is an object as the JSON interface writes it.
type gcsObject struct {
	Kind           string            `json:"kind"`
	Name           string            `json:"name"`
	Bucket         string            `json:"bucket"`
	Generation     string            `json:"generation"`
	Metageneration string            `json:"metageneration"`
	Size           string            `json:"size"`
	Updated        string            `json:"updated"`
	TimeCreated    string            `json:"timeCreated"`
	Etag           string            `json:"etag"`
	Crc32c         string            `json:"crc32c"`
	Metadata       map[string]string `json:"metadata,omitempty"`
}

func describe(key string, o *object) gcsObject {
	when := o.mod.UTC().Format(time.RFC3339Nano)
	return gcsObject{
		"storage#object", key, Bucket, strconv.FormatInt(o.generation, 10), "1", strconv.Itoa(len(o.data)), when, when,
		strings.Trim(o.etag, `"`), crc32c(o.data), o.meta,
	}
}

func crc32c(data []byte) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (s *Server) gcs(w http.ResponseWriter, r *http.Request) {
	const objects = "/storage/v1/b/" + Bucket + "/o"
	q := r.URL.Query()
	switch path := r.URL.Path; {
	case path == "/upload"+objects:
		s.gcsUpload(w, r, q)
	case path == objects:
		s.gcsList(w, q)
	case strings.HasPrefix(path, objects+"/"):
		key := strings.TrimPrefix(path, objects+"/")
		o := s.get(key)
		switch {
		case o == nil:
			fail(w, r, http.StatusNotFound, "notFound")
		case r.Method == http.MethodDelete:
			s.remove(key)
			w.WriteHeader(http.StatusNoContent)
		default:
			writeJSON(w, describe(key, o))
		}
	case strings.HasPrefix(path, "/"+Bucket+"/"):
		o := s.get(strings.TrimPrefix(path, "/"+Bucket+"/"))
		if o == nil {
			fail(w, r, http.StatusNotFound, "NoSuchKey")
			return
		}
		if want := r.Header.Get("x-goog-if-generation-match"); want != "" && want != strconv.FormatInt(o.generation, 10) {
			fail(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		w.Header().Set("x-goog-generation", strconv.FormatInt(o.generation, 10))
		w.Header().Set("x-goog-metageneration", "1")
		w.Header().Set("x-goog-hash", "crc32c="+crc32c(o.data))
		serve(w, r, o, r.Header.Get("Range"))
	default:
		fail(w, r, http.StatusNotFound, "notFound")
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (s *Server) gcsPut(w http.ResponseWriter, r *http.Request, key string, data []byte, meta map[string]string, when condition) {
	o, ok := s.put(key, data, meta, when)
	if !ok {
		fail(w, r, http.StatusPreconditionFailed, "conditionNotMet")
		return
	}
	writeJSON(w, describe(key, o))
}

func (s *Server) gcsUpload(w http.ResponseWriter, r *http.Request, q url.Values) {
	when := condition{generation: q.Get("ifGenerationMatch")}
	var info gcsObject
	switch {
	case r.Method == http.MethodPut || q.Get("upload_id") != "":
		s.gcsChunk(w, r, q.Get("upload_id"))
	case q.Get("uploadType") == "resumable":
		if err := json.NewDecoder(r.Body).Decode(&info); err != nil {
			fail(w, r, http.StatusBadRequest, "parseError")
			return
		}
		id := s.begin(info.Name, info.Metadata, when)
		w.Header().Set("Location", s.URL+r.URL.Path+"?uploadType=resumable&upload_id="+id)
	default:
		_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil {
			fail(w, r, http.StatusBadRequest, "parseError")
			return
		}
		parts := multipart.NewReader(r.Body, params["boundary"])
		head, err := parts.NextPart()
		if err == nil {
			err = json.NewDecoder(head).Decode(&info)
		}
		var data []byte
		if err == nil {
			var body *multipart.Part
			if body, err = parts.NextPart(); err == nil {
				data, err = io.ReadAll(body)
			}
		}
		if err != nil {
			fail(w, r, http.StatusBadRequest, "parseError")
			return
		}
		s.gcsPut(w, r, info.Name, data, info.Metadata, when)
	}
}

// gcsChunk takes a piece of a resumable upload; the last one says how much there is.
func (s *Server) gcsChunk(w http.ResponseWriter, r *http.Request, id string) {
	data, err := io.ReadAll(r.Body)
	s.mu.Lock()
	u := s.uploads[id]
	s.mu.Unlock()
	if err != nil || u == nil {
		fail(w, r, http.StatusNotFound, "notFound")
		return
	}
	if r.Method == http.MethodDelete {
		s.end(id)
		w.WriteHeader(499)
		return
	}
	s.mu.Lock()
	u.parts["all"] = append(u.parts["all"], data...)
	all := u.parts["all"]
	s.mu.Unlock()
	if _, total, _ := strings.Cut(r.Header.Get("Content-Range"), "/"); total != "*" {
		s.end(id)
		s.gcsPut(w, r, u.key, all, u.meta, u.when)
		return
	}
	w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(all)-1))
	w.Header().Set("X-HTTP-Status-Code-Override", "308")
	w.WriteHeader(http.StatusOK)
}

func (s *Server) gcsList(w http.ResponseWriter, q url.Values) {
	limit := 1000
	if n, err := strconv.Atoi(q.Get("maxResults")); err == nil {
		limit = n
	}
	var page struct {
		Kind          string      `json:"kind"`
		Items         []gcsObject `json:"items"`
		NextPageToken string      `json:"nextPageToken,omitempty"`
	}
	page.Kind = "storage#objects"
	keys, objects, more := s.page(q.Get("prefix"), q.Get("pageToken"), q.Get("startOffset"), limit)
	for i, key := range keys {
		page.Items = append(page.Items, describe(key, objects[i]))
	}
	if more {
		page.NextPageToken = keys[len(keys)-1]
	}
	writeJSON(w, page)
}
