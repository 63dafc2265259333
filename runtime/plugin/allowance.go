package plugin

import (
	"fmt"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/weir-data/weir/runtime/meter"
)

// quantum is the fuel a guest gets at a time. It comes back to the host after
// that much, about a tenth of a millisecond: that is what bounds how late a limit is noticed,
// and how long Go's collector waits for a guest.
const quantum = meter.Quantum

// What the host's functions cost in fuel, so that a guest cannot have the host
// do for it what it may not do itself: each a bit, and one that touches
// many bytes by their number.
const (
	callFuel     = 50
	bytesPerFuel = 16
)

// allowance is what a guest may use of time and fuel, and what it used: of
// one task, or of the setup of one instance.
type allowance struct {
	time     time.Duration
	timeName string
	fuel     int64
	fuelName string
	host     time.Duration

	guestTime time.Duration
	hostTime  time.Duration
	usedFuel  int64
	mark      time.Duration // when the guest, or the wait, last began
	yielded   time.Duration // when others were last let run
}

// slice is how long a guest runs while others wait for its processor. Go would
// take it away after ten times that.
const slice = time.Millisecond

func setupAllowance(l Limits) *allowance {
	return &allowance{time: l.SetupTime, timeName: "setup_time", fuel: l.SetupFuel, fuelName: "setup_fuel", host: l.HostTime}
}

func taskAllowance(l Limits) *allowance {
	return &allowance{time: l.GuestTime, timeName: "time", fuel: l.Fuel, fuelName: "fuel", host: l.HostTime}
}

var epoch = time.Now()

// now is a monotonic time that costs one read of the clock.
func now() time.Duration { return time.Since(epoch) }

// begin starts the guest's clock.
func (a *allowance) begin() {
	a.mark = now()
	a.yielded = a.mark
}

// leave counts what the guest took and starts a wait: for a source, a sink, a listener.
func (a *allowance) leave() {
	t := now()
	a.guestTime += t - a.mark
	a.mark = t
}

// back ends a wait.
func (a *allowance) back() error {
	t := now()
	a.hostTime += t - a.mark
	a.mark = t
	return a.checkHost()
}

func (a *allowance) checkHost() error {
	if a.hostTime > a.host {
		return overLimit("host_time", int64(a.host), fmt.Sprintf("a wait of %s for sources and sink", a.hostTime.Round(time.Millisecond)))
	}
	return nil
}

// check looks at what the guest used so far, and lets others run.
func (a *allowance) check() error {
	t := now()
	a.guestTime += t - a.mark
	a.mark = t
	if a.guestTime > a.time {
		return overLimit(a.timeName, int64(a.time), fmt.Sprintf("the guest's time of %s", a.guestTime.Round(time.Millisecond)))
	}
	if t-a.yielded > slice {
		a.yielded = t
		runtime.Gosched()
	}
	if err := a.checkFuel(); err != nil {
		return err
	}
	return a.checkHost()
}

func (a *allowance) checkFuel() error {
	if a.usedFuel > a.fuel {
		return overLimit(a.fuelName, a.fuel, fmt.Sprintf("the guest's fuel of %d", a.usedFuel))
	}
	return nil
}

// refuel answers a guest whose fuel is below zero: it looks whether the guest
// may go on, and gives it more. Being here is what lets the rest of the process
// run, too: Go's scheduler and collector cannot stop compiled guest code.
func (in *instance) refuel(left int64) int64 {
	in.allowance.usedFuel += in.granted - left
	in.granted, in.owed = left, 0
	in.checkpoint()
	in.granted = min(quantum, in.allowance.fuel-in.allowance.usedFuel)
	return in.granted
}

// checkpoint ends the call when a limit is reached or the caller gave up.
func (in *instance) checkpoint() {
	if err := in.ctx.Context.Err(); err != nil {
		in.stop(err)
	}
	if err := in.allowance.check(); err != nil {
		in.stop(err)
	}
}

// charge counts the host's own work for the guest.
func (in *instance) charge(bytes int64) {
	cost := callFuel + bytes/bytesPerFuel
	in.allowance.usedFuel += cost
	if in.owed += cost; in.owed >= quantum {
		in.owed = 0
		in.checkpoint()
	}
}

// use gives the instance another allowance, whose first look comes with the
// guest's next instructions.
func (in *instance) use(a *allowance) {
	in.allowance = a
	in.granted, in.owed = 0, 0
	if fuel := in.fuel(); fuel != nil {
		fuel.Set(0)
	}
	a.begin()
}

// settle counts what the guest used since it last asked. What it says of fuel
// makes a call that ended in time end alike everywhere.
func (in *instance) settle() error {
	a := in.allowance
	t := now()
	a.guestTime += t - a.mark
	a.mark = t
	if fuel := in.fuel(); fuel != nil {
		left := int64(fuel.Get())
		a.usedFuel += in.granted - left
		in.granted = left
	}
	return a.checkFuel()
}

// fuel is the guest's counter; nil in a module without one.
func (in *instance) fuel() api.MutableGlobal {
	if in.mod == nil {
		return nil
	}
	g, _ := in.mod.ExportedGlobal(meter.ExportFuel).(api.MutableGlobal)
	return g
}

// Usage is what a task took, whether it succeeded or not.
type Usage struct {
	GuestTime time.Duration // running, the host's work on its behalf included
	HostTime  time.Duration // waiting for sources, sink and listeners
	Fuel      int64         // about instructions; the same on every machine
	Memory    int64         // bytes of linear memory at the end
	Bytes     int64         // of output
	Rows      int64         // of output
}
