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
	// own cannot be.
	sumPrefix = "# sha256 of the other lines: "
)

// PlanText is plan.yaml: the plan under a notice and the sum that shows an edit.
func PlanText(p v1alpha1.Plan) ([]byte, error) {
	text, err := v1alpha1.YAML(p)
	if err != nil {
		return nil, err
	}
	sum := sumPrefix + hash(append([]byte(planNotice), text...)) + "\n"
	return append([]byte(planNotice+sum), text...), nil
}

// planEdited is whether somebody changed plan.yaml. One that carries no sum was written before there were any, and says nothing.
func planEdited(content []byte) bool {
	for at := 0; ; {
		line, rest, _ := bytes.Cut(content[at:], []byte("\n"))
		if !bytes.HasPrefix(line, []byte("#")) {
			return false // the leading comment ends
		}
		if sum, found := bytes.CutPrefix(line, []byte(sumPrefix)); found {
			return string(sum) != hash(append(bytes.Clone(content[:at]), rest...))
		}
		at = len(content) - len(rest)
	}
}
