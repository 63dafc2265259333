//go:build !linux

package meter

import "time"

var begin = time.Now()

func threadTime() time.Duration { return time.Since(begin) }
