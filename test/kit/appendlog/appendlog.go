// Package appendlog reads what `workload append` writes: lines that count from 1, each with its writer and time. From the lines it follows whether a
// disruption lost one, whether two writers were at work at once, and for how long nobody wrote.
package appendlog

import (
	"fmt"
	"strings"
	"time"
)

// Line is one synced line.
type Line struct {
	Writer string
	Number int // of the writer, from 1
	At     time.Time
}

// Log is the lines of a file, in its order.
type Log []Line

// Parse reads a file. A line that is torn is an error.
func Parse(text string) (Log, error) {
	var log Log
	for line := range strings.Lines(text) {
		var l Line
		var milliseconds int64
		if _, err := fmt.Sscanf(line, "%s %d %d\n", &l.Writer, &l.Number, &milliseconds); err != nil || !strings.HasSuffix(line, "\n") {
			return nil, fmt.Errorf("line %d is %q: %v", len(log)+1, line, err)
		}
		l.At = time.UnixMilli(milliseconds)
		log = append(log, l)
	}
	return log, nil
}

// Writers are those of the log in their order. The error names the first line that is missing, doubled, or written after the next writer began.
func (log Log) Writers() ([]string, error) {
	var writers []string
	next := map[string]int{}
	for i, l := range log {
		if next[l.Writer] == 0 {
			writers = append(writers, l.Writer)
		} else if l.Writer != writers[len(writers)-1] {
			return nil, fmt.Errorf("line %d is number %d of writer %s, but writer %s has begun", i+1, l.Number, l.Writer, writers[len(writers)-1])
		}
		next[l.Writer]++
		if want := next[l.Writer]; l.Number != want {
			return nil, fmt.Errorf("line %d is number %d of writer %s, want %d", i+1, l.Number, l.Writer, want)
		}
	}
	return writers, nil
}

// Since is the lines that were written at a time or later.
func (log Log) Since(at time.Time) Log {
	var later Log
	for _, l := range log {
		if !l.At.Before(at) {
			later = append(later, l)
		}
	}
	return later
}

// Of is the number of lines of a writer.
func (log Log) Of(writer string) int {
	n := 0
	for _, l := range log {
		if l.Writer == writer {
			n++
		}
	}
	return n
}

// LongestPause is the longest time between two lines, from the line before the given time on.
func (log Log) LongestPause(since time.Time) time.Duration {
	var longest time.Duration
	for i := 1; i < len(log); i++ {
		if !log[i].At.Before(since) {
			longest = max(longest, log[i].At.Sub(log[i-1].At))
		}
	}
	return longest
}
