package plan

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/charts"
)

// checks runs every check of a configuration's pods and driver settings that needs no fact.
func checks(t *testing.T, spec string) []string {
	t.Helper()
	c := configured(t, "spec: {"+spec+"}")
	d := &decider{given: c.Spec, spec: c.WithDefaults()}
	d.checkPods()
	return d.problems
}

func TestAPodSettingThatTheClusterWouldRefuseIsAnErrorNow(t *testing.T) {
	const fields = "preferredDuringSchedulingIgnoredDuringExecution"
	affinity := func(rules string) string { return "roles: {controller: {affinity: {" + rules + "}}}" }
	spread := func(rules string) string {
		return "roles: {controller: {topologySpreadConstraints: [" + rules + "]}}"
	}
	for spec, want := range map[string]string{
		affinity("nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}"):                                                                   "want at least one term",
		affinity("nodeAffinity: {" + fields + ": [{weight: 0}]}"):                                                                                        fields + "[0].weight: 0; want 1 to 100",
		affinity("nodeAffinity: {" + fields + ": [{weight: 1, preference: {matchExpressions: [{key: a}]}}]}"):                                            "matchExpressions[0].operator: is not set",
		affinity("nodeAffinity: {" + fields + ": [{weight: 1, preference: {matchExpressions: [{key: a, operator: In}]}}]}"):                              "operator In needs at least one value",
		affinity("nodeAffinity: {" + fields + ": [{weight: 1, preference: {matchExpressions: [{key: a, operator: Gt, values: [b]}]}}]}"):                 `"b" is not a whole number`,
		affinity("nodeAffinity: {" + fields + ": [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}]}"):             "operator Exists takes none",
		affinity("nodeAffinity: {" + fields + ": [{weight: 1, preference: {matchFields: [{key: a, operator: In, values: [b]}]}}]}"):                      "Kubernetes takes metadata.name alone",
		affinity("podAntiAffinity: {" + fields + ": [{weight: 1, podAffinityTerm: {}}]}"):                                                                "podAntiAffinity." + fields + "[0].podAffinityTerm.topologyKey",
		affinity("podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, namespaces: [A]}]}"):                                   `"A" is not a namespace's name`,
		affinity("podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {matchLabels: {a: '?'}}}]}"):            "labelSelector.matchLabels.a",
		spread("{topologyKey: zone, whenUnsatisfiable: DoNotSchedule}"):                                                                                  "[0].maxSkew: 0",
		spread("{maxSkew: 1, topologyKey: zone}"):                                                                                                        "[0].whenUnsatisfiable: is not set",
		spread("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}"):                                                      "[0].minDomains",
		spread("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}, {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}"): "[1]: an earlier constraint",
		spread("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}"):                                                                     "without it the constraint counts no pod",
		spread("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, matchLabelKeys: [a], labelSelector: {matchLabels: {a: b}}}"):          "keep one",
		"roles: {node: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}}":                               "one on each node",
		"roles: {controller: {updateStrategy: {type: OnDelete}}}":                                                                                        "OnDelete is none of a Deployment",
		"roles: {node: {updateStrategy: {type: Recreate}}}":                                                                                              "Recreate is none of a DaemonSet",
		"roles: {controller: {updateStrategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}}}":                                                          "type Recreate takes none",
		"roles: {controller: {updateStrategy: {rollingUpdate: {maxUnavailable: 0}}}}":                                                                    "both 0",
		"roles: {controller: {updateStrategy: {rollingUpdate: {maxUnavailable: 101%}}}}":                                                                 "neither a whole number nor a share",
		"roles: {node: {updateStrategy: {rollingUpdate: {maxSurge: 1}}}}":                                                                                "cannot share its host ports",
		"roles: {node: {env: {1A: b}}}":                                                          `"1A" is not a variable's name`,
		"roles: {node: {env: {LOG_LEVEL: '9'}}}":                                                 "spec.roles.node.env.LOG_LEVEL: the bundle sets it",
		"roles: {controller: {env: {https_proxy: x}}}":                                           "use the key proxy",
		"roles: {controller: {podAnnotations: {cinder-csi.io/config-hash: x}}}":                  "the bundle sets cinder-csi.io/config-hash itself",
		"roles: {controller: {podAnnotations: {'1': x}}}":                                        "kustomize takes the key",
		"roles: {controller: {podAnnotations: {'a b': x}}}":                                      "spec.roles.controller.podAnnotations: \"a b\"",
		"driver: {kubeletDir: var/lib}":                                                          "spec.driver.kubeletDir",
		"driver: {kubeletDir: /var/lib/}":                                                        "spec.driver.kubeletDir",
		"driver: {kubeletDir: '/$(HOME)'}":                                                       "spec.driver.kubeletDir",
		"driver: {drainTimeout: 26s}":                                                            "want a duration from 1s to 25s",
		"driver: {requestsPerSecond: {reads: -1}}":                                               "spec.driver.requestsPerSecond.reads: -1",
		"driver: {requestsPerSecond: {writes: -1}}":                                              "spec.driver.requestsPerSecond.writes: -1",
		"driver: {metadata: [configdrive]}":                                                      "did you mean configDrive?",
		"driver: {metadata: [dmi, dmi]}":                                                         "spec.driver.metadata[1]: dmi is there twice",
		"driver: {extraArgs: {node: [user-agent=x]}}":                                            "want --name=value",
		"driver: {extraArgs: {node: ['--user-agnet=x']}}":                                        "did you mean user-agent?",
		"driver: {extraArgs: {node: ['--nodeid=x']}}":                                            "--nodeid has no effect",
		"driver: {extraArgs: {controller: ['--kube-api-qps=9']}}":                                "--kube-api-qps has no effect: the driver sends",
		"driver: {extraArgs: {controller: ['--kube_api_burst=9']}}":                              "--kube-api-burst has no effect",
		"driver: {extraArgs: {controller: ['--min-resync-period=1h']}}":                          "--min-resync-period has no effect",
		"driver: {extraArgs: {controller: ['--kubeconfig=/a']}}":                                 "asks the API server of its cluster",
		"driver: {extraArgs: {node: ['--master=https://a']}}":                                    "asks the API server of its cluster",
		"driver: {extraArgs: {controller: ['--cloud-name=a']}}":                                  "a bundle serves one cloud",
		"driver: {extraArgs: {node: ['--v=9']}}":                                                 "use spec.driver.logLevel in place of --v",
		"driver: {extraArgs: {node: ['--driver_name=x']}}":                                       "use spec.driver.name",
		"driver: {extraArgs: {controller: ['--endpoint=x']}}":                                    "--endpoint is set already",
		"driver: {extraArgs: {controller: ['--default-fs-type=xfs', '--default-fs-type=ext4']}}": "[1]: --default-fs-type is set already",
		"driver: {extraArgs: {controller: ['--default-fs-type=ntfs']}}":                          "ntfs",
		"driver: {extraArgs: {controller: ['--additional-topology=x']}}":                         "must be formatted as key=value",
		"roles: {node: {env: {NODE_NAME: a}}}":                                                   "spec.roles.node.env.NODE_NAME: the bundle sets it",
		"driver: {extraArgs: {controller: ['--remove-startup-taint=true']}}":                     "use spec.nodeLifecycle.startupTaint",
		"driftCheck: {schedule: hourly}":                                                         `"hourly" is not a schedule`,
	} {
		if got := strings.Join(checks(t, spec), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: want %q, got %q", spec, want, got)
		}
	}
}

func TestPodSettingsThatAreRightPass(t *testing.T) {
	for _, spec := range []string{
		"",
		"driver: {kubeletDir: /var/lib/k0s/kubelet, drainTimeout: 25s, requestsPerSecond: {reads: 0}, metadata: [dmi, configDrive]}",
		"driver: {extraArgs: {controller: ['--user-agent=a', '--user-agent=b', '--default-fs-type=xfs'], node: ['--additional-topology=a=b']}}",
		"roles: {controller: {updateStrategy: {type: Recreate}}, node: {updateStrategy: {type: OnDelete}}}",
		"roles: {controller: {updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}}, node: {updateStrategy: {rollingUpdate: {maxUnavailable: 100%}}}}",
		"roles: {controller: {env: {GODEBUG: netdns=go}, podAnnotations: {example.com/a: b}}}",
		"roles: {controller: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Lt, values: ['5']}]}]}}}}}",
		"roles: {controller: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 2, labelSelector: {matchLabels: {app: cinder-csi-controller}}, matchLabelKeys: [pod-template-hash]}]}}",
	} {
		if got := checks(t, spec); len(got) > 0 {
			t.Errorf("%s: want no problem, got %q", spec, got)
		}
	}
}

// What the plan takes, the chart takes: a bundle whose values the chart refuses is of no use.
func TestThePlanAndTheChartJudgeSchedulesAlike(t *testing.T) {
	text, err := charts.Files.ReadFile("cinder-csi/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			DriftCheck struct {
				Properties struct{ Schedule struct{ Pattern string } }
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	chart := regexp.MustCompile(schema.Properties.DriftCheck.Properties.Schedule.Pattern)
	for schedule, right := range map[string]bool{
		"": true, "@daily": true, "@hourly": true, "*/5 6 * * 1-5": true, "007 6 * * *": true, "*/90 6,*-8 ? JAN-mar *": true,
		"@every 1h": true, "@every 1h30m": true, "@every 1.5h": true, "@every 90s": true,
		"@every -1h": false, "@every +1h": false, "@every 1": false, "@every 1d": false, "@every h": false, "@every": false, "@every 1h ": false, "@every . ": false,
		"@Daily": false, "@reboot": false, "hourly": false, "CRON_TZ=UTC 0 6 * * *": false, "TZ=UTC @daily": false, "0 6 * * * ": false, " 0 6 * * *": false,
		"+5 6 * * *": false, "0\t6 * * *": false, "61 * * * *": false, "*/0 * * * *": false, "0 6 * *": false, "0 6 * * * *": false, "-5 * * * *": false,
	} {
		if plan := len(checks(t, "driftCheck: {schedule: "+strconv.Quote(schedule)+"}")) == 0; plan != right || chart.MatchString(schedule) != right {
			t.Errorf("%q: want %t, the plan says %t and the chart %t", schedule, right, plan, chart.MatchString(schedule))
		}
	}
	if len(checks(t, "driftCheck: {schedule: '0 25 * * *'}")) == 0 {
		t.Error("want the range of each field checked, by the plan at least")
	}
}
