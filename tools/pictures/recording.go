package pictures

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// RecordingFile is where test/suite/monitoring keeps its recording, from the top of the repository.
const RecordingFile = "test/suite/monitoring/testdata/dashboards.json"

// Recording is what a real Prometheus answered to the panels of the dashboards, in one run of test/suite/monitoring. It has no time of the day.
type Recording struct {
	// Seconds is how long the run took. Step is the time between two values of a series.
	Seconds int `json:"seconds"`
	Step    int `json:"step"`
	// Faults are what went wrong in the run, in the order of their beginning.
	Faults []Fault `json:"faults"`
	// Answers are the series by PromQL expression, as the dashboard has it.
	Answers map[string][]Series `json:"answers"`
}

// Fault is one thing that went wrong.
type Fault struct {
	What string `json:"what"`
	// Dashboards are the names of the files that show it.
	Dashboards []string `json:"dashboards"`
	// From and To are seconds since the beginning of the run.
	From int `json:"from"`
	To   int `json:"to"`
}

// Series is one line of a panel. Values has one number for each step, or "-" where Prometheus has none.
type Series struct {
	Labels map[string]string `json:"labels"`
	Values string            `json:"values"`
}

// noValue stands for a number that Prometheus does not have.
const noValue = "-"

// Values writes numbers as a Series has them: three digits are more than a picture shows. NaN is no value.
func Values(numbers []float64) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = noValue
		if !math.IsNaN(n) {
			words[i] = strconv.FormatFloat(n, 'g', 3, 64)
		}
	}
	return strings.Join(words, " ")
}

// numbers are the values of a series; NaN is no value.
func (s Series) numbers() ([]float64, error) {
	words := strings.Fields(s.Values)
	numbers := make([]float64, len(words))
	for i, word := range words {
		numbers[i] = math.NaN()
		if word == noValue {
			continue
		}
		var err error
		if numbers[i], err = strconv.ParseFloat(word, 64); err != nil {
			return nil, fmt.Errorf("series %v: %w", s.Labels, err)
		}
	}
	return numbers, nil
}

func readRecording(repository fs.FS) (r Recording, err error) {
	text, err := fs.ReadFile(repository, RecordingFile)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", RecordingFile, err)
	}
	if r.Seconds <= 0 || r.Step <= 0 {
		return r, fmt.Errorf("%s does not say how long the run took", RecordingFile)
	}
	return r, nil
}
