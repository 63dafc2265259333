package faultstore

import (
	"math"
	"path"
	"time"

	"github.com/weir-data/weir/host/storage"
)

// Op names an operation of a store.
type Op string

// The operations. A streaming write is Create, then OpWrite for each piece, then OpCommit or OpAbort.
const (
	OpGet         Op = "get"
	OpOpen        Op = "open"
	OpRead        Op = "read"
	OpStat        Op = "stat"
	OpPut         Op = "put"
	OpPutIfAbsent Op = "put-if-absent"
	OpCreate      Op = "create"
	OpWrite       Op = "write"
	OpCommit      Op = "commit"
	OpAbort       Op = "abort"
	OpList        Op = "list"
	OpDelete      Op = "delete"
	OpLock        Op = "lock"
	OpSweep       Op = "sweep"
)

// Rule says what happens to some of the calls. The first rule that fits a call decides.
type Rule struct {
	// Op is the operation, "" any.
	Op Op
	// Name is a pattern of path.Match for the whole name or for its last element, "" any.
	Name string
	// Skip lets that many fitting calls pass first.
	Skip int
	// Times is how many calls are hit after that; 0 is all.
	Times int
	// Effect is what happens to them.
	Effect Effect

	first, last int // calls of the store, from 1; 0: not counted so
}

// AtCall is the rule for the n-th call of the store whatever it is, counting
// from 1 in the order of Calls. With n from 1 to the number of calls that an
// undisturbed run makes, something happens at each of them.
func AtCall(n int, e Effect) Rule { return Rule{Effect: e, first: n, last: n} }

// FromCall is the rule for the n-th call and all after it. With Fail it is what
// a process that died there leaves behind, cleaning up included.
func FromCall(n int, e Effect) Rule { return Rule{Effect: e, first: n, last: math.MaxInt} }

// Effect is what happens to a call that is hit. The zero Effect lets it pass.
type Effect struct {
	delay  time.Duration
	err    error
	keep   int  // bytes that are written or read before the failure, -1: none
	answer bool // the work is done before the failure
	call   func()
	after  func()
	twice  bool
	later  int  // the call is made once more after that many others
	mixed  bool // a listing in the random order of seed
	seed   uint64
}

// Fail makes the call fail without doing anything.
func Fail(err error) Effect { return Effect{err: err, keep: -1} }

// Full makes the call fail for want of room, without doing anything.
func Full() Effect { return Fail(storage.ErrFull) }

// Delay makes the call wait first.
func Delay(d time.Duration) Effect { return Effect{delay: d, keep: -1} }

// Tear does the first n bytes of the work, then fails: what a medium without
// atomic writes leaves behind.
func Tear(n int, err error) Effect { return Effect{err: err, keep: n} }

// LoseAnswer does the work, then fails.
func LoseAnswer(err error) Effect { return Effect{err: err, keep: -1, answer: true} }

// Call runs f before the call, such as a rival's commit.
func Call(f func()) Effect { return Effect{call: f, keep: -1} }

// After runs f when the call is done, before it returns.
func After(f func()) Effect { return Effect{after: f, keep: -1} }

// Duplicate makes the call twice and gives the second answer, as a client does
// that repeats a request whose answer it did not get: a put-if-absent finds
// its own object. Of a listing every object comes twice. What cannot be made
// twice (Create, the pieces and the end of a streaming write, a lock, opening
// an object) passes.
func Duplicate() Effect { return Effect{twice: true, keep: -1} }

// DuplicateLate makes a Put, PutIfAbsent or Delete once more after n other
// calls: a request that the network held back.
func DuplicateLate(n int) Effect { return Effect{later: max(n, 1), keep: -1} }

// Reorder gives the objects of a listing in a random order; seed says which.
func Reorder(seed uint64) Effect { return Effect{mixed: true, seed: seed, keep: -1} }

func (r *Rule) fits(op Op, name string, call int) bool {
	if r.first > 0 && (call < r.first || call > r.last) {
		return false
	}
	if r.Op != "" && r.Op != op {
		return false
	}
	return r.Name == "" || match(r.Name, name) || match(r.Name, path.Base(name))
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
