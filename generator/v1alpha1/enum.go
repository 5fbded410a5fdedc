package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// enums are the values that a key may have, by type and JSON key.
var enums = merge(settingEnums(), map[string][]any{
	"Spec.size":                      {SmallCluster, MediumCluster, LargeCluster},
	"OpenShift.coexistence":          {SideBySide, Adopt},
	"OpenShift.controlPlaneTopology": {SingleReplica, HighlyAvailable, HighlyAvailableArbiter, DualReplica, External},
	"OpenShift.monitoring":           {PlatformMonitoring, UserWorkloadMonitoring},
	"Driver.seLinux":                 {Auto, Enabled, Disabled},
	"HyperShift.guestAccess":         {AdminKubeconfig, ServiceAccountToken},
	"Credentials.request":            {Auto, Enabled, Disabled},
	"Topology.mode":                  {Auto, Enabled, Disabled},
	"ClassOverride.reclaimPolicy":    {"Delete", "Retain"},
	"Snapshots.backup":               {Auto, Enabled, Disabled},
	"SnapshotClass.deletionPolicy":   {"Delete", "Retain"},
	"AttributesClass.policy":         {"never", "on-demand"},
	"Monitoring.kind":                {None, PodMonitor, ServiceMonitor},
	"TLS.minVersion":                 {"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"},
	"Image.pullPolicy":               {"Always", "IfNotPresent", "Never"},
	"UpdateStrategy.type":            {"RollingUpdate", "Recreate", "OnDelete"},
	"Toleration.operator":            {"Equal", "Exists"},
	"Toleration.effect":              {"NoSchedule", "PreferNoSchedule", "NoExecute"},
	"NodeRequirement.operator":       {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"},
	"LabelRequirement.operator":      {"In", "NotIn", "Exists", "DoesNotExist"},

	"StorageClasses.volumeBindingMode": {WaitForFirstConsumer, Immediate},
	"ClassOverride.volumeBindingMode":  {WaitForFirstConsumer, Immediate},

	"TopologySpreadConstraint.whenUnsatisfiable":  {"DoNotSchedule", "ScheduleAnyway"},
	"TopologySpreadConstraint.nodeAffinityPolicy": {"Honor", "Ignore"},
	"TopologySpreadConstraint.nodeTaintsPolicy":   {"Honor", "Ignore"},

	"Plan.target":       {Vanilla, Standalone, HostedControlPlane},
	"Plan.format":       {Kustomize, Helm},
	"Decision.source":   {"config", "inferred", "default"},
	"Change.class":      {CloudChange, ConfigChange, GeneratorChange, HandEdit},
	"FileChange.action": {"create", "update", "remove"},
	"Fact.state":        {Known, Denied, Unsupported, Failed},
})

// EnumProblems reports each text of a configuration that is not among the values of its key. A problem is a sentence that begins with the
// key. An empty text counts as an absent key.
func EnumProblems(s Spec) []string {
	var problems []string
	checkEnums("spec", reflect.ValueOf(s), &problems)
	return problems
}

func checkEnums(path string, v reflect.Value, problems *[]string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			checkEnums(path, v.Elem(), problems)
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkEnums(fmt.Sprintf("%s[%d]", path, i), v.Index(i), problems)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			checkEnums(path+"."+key.String(), v.MapIndex(key), problems)
		}
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if jsonKey(f) == "" {
				continue
			}
			at, value := path+"."+jsonKey(f), v.FieldByIndex(f.Index)
			if allowed := enums[owner(v.Type(), f)+"."+jsonKey(f)]; allowed != nil {
				checkEnum(at, value.String(), allowed, problems)
				continue
			}
			checkEnums(at, value, problems)
		}
	}
}

func checkEnum(path, value string, allowed []any, problems *[]string) {
	if value == "" || slices.Contains(allowed, any(value)) {
		return
	}
	var names []string
	for _, a := range allowed {
		names = append(names, fmt.Sprint(a))
	}
	problem := fmt.Sprintf("%s: %q is not one of %s", path, value, strings.Join(names, ", "))
	if near, ok := contract.Nearest(value, names); ok {
		problem += "; did you mean " + near + "?"
	}
	*problems = append(*problems, problem)
}
