package cloudtest

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

const azureAccount = "devstoreaccount1"

// Azure starts an Azure Blob Storage and sets the environment so that clients
// find it. Its folders are azblob://lake/….
func Azure(t testing.TB) *Server {
	t.Helper()
	s := newServer(func(s *Server) http.HandlerFunc { return s.azure })
	return s.forTest(t, AzureEnv(strings.TrimPrefix(s.URL, "http://")))
}

// AzureEnv is the environment in which clients find an emulator at host:port.
func AzureEnv(host string) map[string]string {
	return map[string]string{
		"AZURE_STORAGE_ACCOUNT": azureAccount, "AZURE_STORAGE_PROTOCOL": "http", "AZURE_STORAGE_IS_LOCAL_EMULATOR": "true", "AZURE_STORAGE_DOMAIN": host,
		// The key of every emulator.
		"AZURE_STORAGE_KEY": "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
	}
}

func (s *Server) azure(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/"+azureAccount+"/")
	name, key, _ := strings.Cut(path, "/")
	q := r.URL.Query()
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		fail(w, r, http.StatusBadRequest, "IncompleteBody")
	case name != Bucket:
		fail(w, r, http.StatusNotFound, "ContainerNotFound")
	case q.Get("comp") == "list":
		s.azureList(w, q)
	case r.Method == http.MethodPut && q.Get("comp") == "block":
		s.mu.Lock()
		if s.uploads[key] == nil {
			s.uploads[key] = &upload{parts: map[string][]byte{}}
		}
		s.uploads[key].parts[q.Get("blockid")] = body
		s.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut && q.Get("comp") == "blocklist":
		var list struct{ Latest []string }
		if err := xml.Unmarshal(body, &list); err != nil {
			fail(w, r, http.StatusBadRequest, "InvalidXmlDocument")
			return
		}
		var data []byte
		if u := s.end(key); u != nil {
			for _, id := range list.Latest {
				data = append(data, u.parts[id]...)
			}
		}
		s.azurePut(w, r, key, data)
	case r.Method == http.MethodPut:
		s.azurePut(w, r, key, body)
	case r.Method == http.MethodDelete:
		if !s.remove(key) {
			fail(w, r, http.StatusNotFound, "BlobNotFound")
			return
		}
		w.WriteHeader(http.StatusAccepted)
	default:
		o := s.get(key)
		switch etag := r.Header.Get("If-Match"); {
		case o == nil:
			fail(w, r, http.StatusNotFound, "BlobNotFound")
		case etag != "" && etag != o.etag:
			fail(w, r, http.StatusPreconditionFailed, "ConditionNotMet")
		default:
			h := w.Header()
			h.Set("x-ms-creation-time", o.mod.UTC().Format(http.TimeFormat))
			h.Set("x-ms-blob-type", "BlockBlob")
			for k, v := range o.meta {
				h.Set("x-ms-meta-"+k, v)
			}
			ranges := r.Header.Get("x-ms-range")
			if ranges == "" {
				ranges = r.Header.Get("Range")
			}
			serve(w, r, o, ranges)
		}
	}
}

func (s *Server) azurePut(w http.ResponseWriter, r *http.Request, key string, data []byte) {
	meta := map[string]string{}
	for k := range r.Header {
		if name, ok := strings.CutPrefix(strings.ToLower(k), "x-ms-meta-"); ok {
			meta[name] = r.Header.Get(k)
		}
	}
	when := condition{absent: r.Header.Get("If-None-Match") == "*", etag: r.Header.Get("If-Match")}
	o, ok := s.put(key, data, meta, when)
	switch {
	case !ok && when.absent:
		fail(w, r, http.StatusConflict, "BlobAlreadyExists")
	case !ok:
		fail(w, r, http.StatusPreconditionFailed, "ConditionNotMet")
	default:
		w.Header().Set("ETag", o.etag)
		w.Header().Set("Last-Modified", o.mod.UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusCreated)
	}
}

func (s *Server) azureList(w http.ResponseWriter, q url.Values) {
	limit := 5000
	if n, err := strconv.Atoi(q.Get("maxresults")); err == nil {
		limit = n
	}
	type properties struct {
		LastModified  string `xml:"Last-Modified"`
		Etag          string
		ContentLength int    `xml:"Content-Length"`
		ContentType   string `xml:"Content-Type"`
		BlobType      string
	}
	type blob struct {
		Name       string
		Properties properties
	}
	var page struct {
		XMLName       xml.Name `xml:"EnumerationResults"`
		ContainerName string   `xml:",attr"`
		Prefix        string
		MaxResults    int
		Blobs         struct{ Blob []blob }
		NextMarker    string
	}
	page.ContainerName, page.Prefix, page.MaxResults = Bucket, q.Get("prefix"), limit
	keys, objects, more := s.page(q.Get("prefix"), q.Get("marker"), q.Get("startFrom"), limit)
	for i, key := range keys {
		o := objects[i]
		page.Blobs.Blob = append(page.Blobs.Blob, blob{key, properties{o.mod.UTC().Format(http.TimeFormat), o.etag, len(o.data), "application/octet-stream", "BlockBlob"}})
	}
	if more {
		page.NextMarker = keys[len(keys)-1]
	}
	writeXML(w, page)
}
