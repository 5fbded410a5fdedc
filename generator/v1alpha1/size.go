package v1alpha1

// ClusterSize is a size of cluster, and what the pods of the controller get for it. Volumes and Nodes are those of the clusters
// that docs/explanation/scale.md measures.
type ClusterSize struct {
	Name           string
	Volumes, Nodes int
	// Memory are the memory requests by container. A sidecar has what the busier replica had resident at rest, and about a tenth more. The driver
	// has more than at rest, because a burst takes half as much again. Containers that were not measured are not here.
	Memory map[string]string
	// Attacher are the settings of external-attacher.
	Attacher AttacherSettings
	// Because is the figure that asked for the settings of the attacher.
	Because string
}

// AttacherSettings are flags of external-attacher: its requests to the API server, and how often it compares all attachments with the cloud.
type AttacherSettings struct {
	QPS           int    `json:"apiRequestsPerSecond"`
	Burst         int    `json:"apiBurst"`
	ReconcileSync string `json:"reconcileSync"`
}

// The sizes.
const (
	SmallCluster  = "small"
	MediumCluster = "medium"
	LargeCluster  = "large"
)

// ClusterSizes are the sizes, the smallest first. The medium one is what manifests/ and the chart have by default. Only a person chooses one:
// a size that followed the cloud would replace the pods of the controller whenever somebody creates volumes.
var ClusterSizes = []ClusterSize{
	{
		Name: SmallCluster, Volumes: 100, Nodes: 20,
		Memory:   map[string]string{"driver": "50Mi", "provisioner": "75Mi", "attacher": "70Mi", "resizer": "65Mi"},
		Attacher: AttacherSettings{20, 100, "1m"},
		Because:  "1 listing a minute costs the cloud 0.02 requests a second",
	},
	{
		Name: MediumCluster, Volumes: 1000, Nodes: 100,
		Memory:   map[string]string{"driver": "50Mi", "provisioner": "95Mi", "attacher": "90Mi", "resizer": "80Mi"},
		Attacher: AttacherSettings{20, 100, "1m"},
		Because:  "1 listing a minute costs the cloud 0.02 requests a second",
	},
	{
		Name: LargeCluster, Volumes: 10000, Nodes: 1000,
		Memory:   map[string]string{"driver": "64Mi", "provisioner": "290Mi", "attacher": "235Mi", "resizer": "220Mi"},
		Attacher: AttacherSettings{100, 200, "5m"},
		Because:  "240 pods of lost nodes ran again after 41 s instead of 54 s; one listing of 10,000 volumes is ten requests",
	},
}

// SizeOf is the size of a name.
func SizeOf(name string) (ClusterSize, bool) {
	for _, s := range ClusterSizes {
		if s.Name == name {
			return s, true
		}
	}
	return ClusterSize{}, false
}
