package weir

// abiVersion is the version of the contract that this SDK speaks.
const abiVersion = 1

// manifest writes what the module declares, as the host reads it.
func (r *registry) manifest() []byte {
	w := jsonWriter{}
	w.open('{')
	w.number("abi", abiVersion)
	w.text("module", r.module)
	w.text("version", r.version)
	w.text("sdk", sdkVersion)
	if len(r.functions) > 0 {
		w.key("functions")
		w.open('[')
		for _, f := range r.functions {
			f.write(&w, r.confRead)
		}
		w.close(']')
	}
	if len(r.datasets) > 0 {
		w.key("datasets")
		w.open('[')
		for _, d := range r.datasets {
			d.write(&w)
		}
		w.close(']')
	}
	if len(r.flows) > 0 {
		w.key("flows")
		w.open('[')
		for _, f := range r.flows {
			f.write(&w)
		}
		w.close(']')
	}
	w.close('}')
	return w.buf
}
