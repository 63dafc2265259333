package sql

/*
#include <stdint.h>

void weir_room(void *, void *, void *);
void weir_work(void *, void *, void *);
void weir_steps(void *, void *, void *);
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/weir-data/weir/host/fault"
)

// What one call of a function may make or take. DuckDB's memory limit does not
// count the values of a vector while a function makes them, and nothing stops
// a function between two rows; so the bound stands before the call, on the
// sizes of its arguments, for each value and for a vector of 2,048 together.
const (
	maxValueBytes  = 16 << 20
	maxVectorBytes = 256 << 20
	maxValueSteps  = 1 << 26
	maxVectorSteps = 1 << 31
)

// The functions that hold the bounds. They give their first argument back when
// the second, which is what the value to be made would take, is within the
// bounds. Standing in an argument of the function they guard, they are done
// before it, also where DuckDB folds constants: a failure there ends the folding.
const (
	roomFunction  = reservedPrefix + "room"
	workFunction  = reservedPrefix + "work"
	stepsFunction = reservedPrefix + "steps"
)

// limitCode is the code of every bound of this package; messages name the limit and its value.
const limitCode = "SQL_LIMIT_EXCEEDED"

// registerBounds makes the functions known to an instance.
func registerBounds(c *connection) error {
	for _, f := range []struct {
		name     string
		call     unsafe.Pointer
		overload [][]mapping.Type // the last is the result
	}{
		{roomFunction, C.weir_room, [][]mapping.Type{
			{mapping.TypeBigInt, mapping.TypeDouble, mapping.TypeBigInt},
			{mapping.TypeTimestamp, mapping.TypeDouble, mapping.TypeTimestamp},
			{mapping.TypeTimestampTZ, mapping.TypeDouble, mapping.TypeTimestampTZ},
			{mapping.TypeVarchar, mapping.TypeDouble, mapping.TypeVarchar},
		}},
		{workFunction, C.weir_work, [][]mapping.Type{{mapping.TypeVarchar, mapping.TypeDouble, mapping.TypeVarchar}}},
		{stepsFunction, C.weir_steps, [][]mapping.Type{
			{mapping.TypeBigInt, mapping.TypeBigInt, mapping.TypeBigInt, mapping.TypeDouble},
			{mapping.TypeTimestamp, mapping.TypeTimestamp, mapping.TypeInterval, mapping.TypeDouble},
			{mapping.TypeTimestampTZ, mapping.TypeTimestampTZ, mapping.TypeInterval, mapping.TypeDouble},
		}},
	} {
		if err := registerFunction(c, f.name, f.call, f.overload); err != nil {
			return err
		}
	}
	return nil
}

func registerFunction(c *connection, name string, call unsafe.Pointer, overloads [][]mapping.Type) error {
	set := mapping.CreateScalarFunctionSet(name)
	defer mapping.DestroyScalarFunctionSet(&set)
	for _, types := range overloads {
		f := mapping.CreateScalarFunction()
		mapping.ScalarFunctionSetName(f, name)
		for i, id := range types {
			t := mapping.CreateLogicalType(id)
			if i < len(types)-1 {
				mapping.ScalarFunctionAddParameter(f, t)
			} else {
				mapping.ScalarFunctionSetReturnType(f, t)
			}
			mapping.DestroyLogicalType(&t)
		}
		mapping.ScalarFunctionSetSpecialHandling(f) // NULLs are handled here
		mapping.ScalarFunctionSetFunction(f, call)
		added := mapping.AddScalarFunctionToSet(set, f)
		mapping.DestroyScalarFunction(&f)
		if added == mapping.StateError {
			return fault.New("INTERNAL_ERROR", "DuckDB does not take the function %s", name)
		}
	}
	if mapping.RegisterScalarFunctionSet(c.conn, set) == mapping.StateError {
		return fault.New("INTERNAL_ERROR", "DuckDB does not take the function %s", name)
	}
	return nil
}

//export weir_room
func weir_room(info, chunk, out unsafe.Pointer) {
	within(info, chunk, out, "value_bytes", maxValueBytes, "vector_bytes", maxVectorBytes, "bytes")
}

//export weir_work
func weir_work(info, chunk, out unsafe.Pointer) {
	within(info, chunk, out, "value_steps", maxValueSteps, "vector_steps", maxVectorSteps, "steps")
}

// within gives the first column of the chunk when the second keeps the bounds.
func within(info, chunk, out unsafe.Pointer, one string, most float64, together string, mostTogether float64, unit string) {
	in := mapping.DataChunk{Ptr: chunk}
	sizes := mapping.DataChunkGetVector(in, 1)
	valid := mapping.VectorGetValidity(sizes)
	sum := 0.0
	for row, size := range vectorOf[float64](sizes, in) {
		switch {
		case valid != nil && !mapping.ValidityRowIsValid(valid, mapping.IdxT(row)), size <= 0:
			continue
		case size > most || math.IsNaN(size):
			overBound(info, fmt.Sprintf("a value of about %.0f %s is over the limit %s = %.0f", size, unit, one, most))
			return
		}
		if sum += size; sum > mostTogether {
			overBound(info, fmt.Sprintf("%d values of about %.0f %s together are over the limit %s = %.0f", row+1, sum, unit, together, mostTogether))
			return
		}
	}
	mapping.VectorReferenceVector(mapping.Vector{Ptr: out}, mapping.DataChunkGetVector(in, 0))
}

func overBound(info unsafe.Pointer, text string) {
	mapping.ScalarFunctionSetError(mapping.FunctionInfo{Ptr: info}, "["+limitCode+"] "+text)
}

// vectorOf gives the values of a flat vector.
func vectorOf[T any](v mapping.Vector, of mapping.DataChunk) []T {
	return unsafe.Slice((*T)(mapping.VectorGetData(v)), int(mapping.DataChunkGetSize(of)))
}

// interval is DuckDB's.
type interval struct {
	months, days int32
	micros       int64
}

//export weir_steps
func weir_steps(info, chunk, out unsafe.Pointer) {
	in := mapping.DataChunk{Ptr: chunk}
	from := vectorOf[int64](mapping.DataChunkGetVector(in, 0), in)
	to := vectorOf[int64](mapping.DataChunkGetVector(in, 1), in)
	by := mapping.DataChunkGetVector(in, 2)
	result := vectorOf[float64](mapping.Vector{Ptr: out}, in)
	defer zeroUnderNull(in, result)
	t := mapping.VectorGetColumnType(by)
	defer mapping.DestroyLogicalType(&t)
	if mapping.GetTypeId(t) == mapping.TypeInterval {
		for row, step := range vectorOf[interval](by, in) {
			result[row] = steps(from[row], to[row], float64(step.months)*28*86400e6+float64(step.days)*86400e6+float64(step.micros))
		}
		return
	}
	for row, step := range vectorOf[int64](by, in) {
		result[row] = steps(from[row], to[row], float64(step))
	}
}

// zeroUnderNull takes the numbers away that were made of NULLs.
func zeroUnderNull(in mapping.DataChunk, result []float64) {
	for i := range mapping.DataChunkGetColumnCount(in) {
		valid := mapping.VectorGetValidity(mapping.DataChunkGetVector(in, i))
		if valid == nil {
			continue
		}
		for row := range result {
			if !mapping.ValidityRowIsValid(valid, mapping.IdxT(row)) {
				result[row] = 0
			}
		}
	}
}

// steps counts the elements of a series, at least.
func steps(from, to int64, by float64) float64 {
	if by == 0 {
		return 0
	}
	return max(0, math.Floor((float64(to)-float64(from))/by)+1)
}
