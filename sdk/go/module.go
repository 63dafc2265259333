package weir

import "github.com/weir-data/weir/sdk/go/internal/host"

// sdkVersion is what manifests name as the SDK that made them.
const sdkVersion = "go/0.1.0"

// registry is everything a module declares. There is one: a module is one program.
type registry struct {
	module, version string
	defines         []func()
	resolved        bool
	functions       []*function
	datasets        []*dataset
	flows           []*flow
	confRead        []string
	errs            []string
	before          *registry // as it was when the definitions ran
}

var registered registry

// Module names the module. The definitions run when the host first asks for the manifest or calls a
// function, with the configuration at hand; put every declaration into them:
//
//	func init() { weir.Module("sap", "1.4.0", pipeline) }
func Module(name, version string, definitions ...func()) {
	r := &registered
	if r.module != "" {
		r.wrong("Module was called twice: " + r.module + " and " + name)
	}
	if name == "" {
		r.wrong("Module needs a name")
	}
	r.module, r.version = name, version
	r.defines = append(r.defines, definitions...)
}

// Conf reads a configuration value while declaring: names of datasets may depend on it. The key joins
// what every function of the module may read, so that a call declares what the manifest did.
func Conf(key string) (string, bool) {
	r := &registered
	known := false
	for _, k := range r.confRead {
		known = known || k == key
	}
	if !known {
		r.confRead = append(r.confRead, key)
	}
	return confGet(key)
}

// ConfOr is Conf with a default.
func ConfOr(key, def string) string {
	if v, ok := Conf(key); ok {
		return v
	}
	return def
}

// wrong records a mistake in the declarations; weir_describe fails with all of them.
//
//go:noinline
func (r *registry) wrong(what string) { r.errs = append(r.errs, what) }

// resolve runs the definitions, once.
func (r *registry) resolve() {
	if r.resolved {
		return
	}
	before := *r
	r.before, r.resolved = &before, true
	for _, define := range r.defines {
		define()
	}
	if r.module == "" {
		r.wrong("nothing called weir.Module")
	}
	r.checkReferences()
}

// reset undoes resolve.
func (r *registry) reset() {
	if r.resolved {
		*r = *r.before
	}
}

// failure gives the mistakes as one text.
func (r *registry) failure() error {
	if len(r.errs) == 0 {
		return nil
	}
	b := append([]byte("[INVALID_DECLARATION] module "), r.module...)
	for i, e := range r.errs {
		if i == 0 {
			b = append(b, ": "...)
		} else {
			b = append(b, "; "...)
		}
		b = append(b, e...)
	}
	return Error(b)
}

// describe is weir_describe.
func describe() (status int32) {
	defer func() {
		if v := recover(); v != nil {
			host.Fail(panicText(v))
			status = 1
		}
	}()
	registered.resolve()
	if err := registered.failure(); err != nil {
		host.Fail(err.Error())
		return 1
	}
	if host.ResultWrite(registered.manifest()) < 0 {
		host.Fail(lastError("writing the manifest").Error())
		return 1
	}
	return 0
}

// call is weir_call.
func call(number int32) (status int32) {
	defer func() {
		if v := recover(); v != nil {
			host.Fail(panicText(v))
			status = 1
		}
	}()
	r := &registered
	r.resolve()
	err := r.failure()
	if err == nil && (number < 0 || int(number) >= len(r.functions)) {
		err = errorf("[NO_SUCH_FUNCTION] module ", r.module, " has no function ", itoa(int64(number)))
	}
	if err == nil {
		c := newCall(r.functions[number])
		err = c.finish(c.fn.run(c))
	}
	if err != nil {
		host.Fail(err.Error())
		return 1
	}
	return 0
}
