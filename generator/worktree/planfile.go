package worktree

import (
	"bytes"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// PlanFile lists what DIR holds.
const PlanFile = "plan.yaml"

const (
	planNotice = "# What cinder-csi-generator decided, and the files it wrote. Do not edit: the next run reads it.\n"
	// sumPrefix begins the line that says whether the others are as they were written. The other files' sums are in the plan; its
	// own cannot be. It stands last, below the sums of the files: whatever else two branches change merges without it.
	sumPrefix = "# sha256 of the other lines: "
)

// PlanText is plan.yaml: the plan under a notice, and the sum that shows an edit.
func PlanText(p v1alpha1.Plan) ([]byte, error) {
	text, err := v1alpha1.YAML(p)
	if err != nil {
		return nil, err
	}
	text = append([]byte(planNotice), text...)
	return append(text, sumPrefix+hash(text)+"\n"...), nil
}

// planEdited is whether somebody changed plan.yaml. Without its sum it is, or an edit could hide by removing
// the line. No text of a plan begins such a line: what stands in several lines is indented.
func planEdited(content []byte) bool {
	at := bytes.Index(content, []byte("\n"+sumPrefix)) + 1
	if at == 0 {
		return true
	}
	sum, rest, _ := bytes.Cut(content[at+len(sumPrefix):], []byte("\n"))
	return string(sum) != hash(append(bytes.Clone(content[:at]), rest...))
}
