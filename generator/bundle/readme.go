package bundle

import "github.com/cinder-csi/cinder-csi/generator/plan"

func readme(plan.Result, []*plane) []byte { return []byte("# Bundle\n") }
