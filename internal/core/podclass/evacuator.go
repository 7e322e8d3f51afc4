package podclass

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"ebbtide.dev/ebbtide/api/v1alpha1"
)

const maxRoleLength = 63

// Evacuators returns the evacuators that a pod registered by annotation (KEP-4563), the highest
// priority first and ties by class. Pods of DaemonSets and static pods need not register ours.
// Malformed ones and those past the first v1alpha1.MaxEvacuators are reported, in the order of their
// keys.
func Evacuators(pod *corev1.Pod) ([]v1alpha1.Evacuator, []Problem) {
	evacuators, problems := registered(pod)
	if class, any := ownClass(pod); any && !slices.ContainsFunc(evacuators, func(e v1alpha1.Evacuator) bool { return e.EvacuatorClass == class }) {
		evacuators = append(evacuators, v1alpha1.Evacuator{
			EvacuatorClass: class, Priority: v1alpha1.ControllerEvacuatorPriority, Role: v1alpha1.ControllerEvacuatorRole,
		})
	}
	slices.SortFunc(evacuators, func(a, b v1alpha1.Evacuator) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.EvacuatorClass, b.EvacuatorClass))
	})
	for len(evacuators) > v1alpha1.MaxEvacuators {
		last := len(evacuators) - 1
		problems = append(problems, evacuatorProblem(evacuators[last].EvacuatorClass,
			fmt.Errorf("a pod may have at most %d evacuators, this one comes later", v1alpha1.MaxEvacuators)))
		evacuators = evacuators[:last]
	}
	slices.SortFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Key, b.Key) })
	return evacuators, problems
}

func ownClass(pod *corev1.Pod) (class string, any bool) {
	switch Type(pod) {
	case v1alpha1.PodTypeDaemonSet:
		return v1alpha1.DaemonSetEvacuatorClass, true
	case v1alpha1.PodTypeStatic:
		return v1alpha1.KubeletEvacuatorClass, true
	default:
		return "", false
	}
}

// registered parses the annotations, in no order.
func registered(pod *corev1.Pod) (evacuators []v1alpha1.Evacuator, problems []Problem) {
	for key, value := range pod.Annotations {
		class, found := strings.CutPrefix(key, v1alpha1.EvacuatorAnnotationPrefix)
		if !found {
			continue
		}
		evacuator, err := parseEvacuator(class, value)
		if err != nil {
			problems = append(problems, evacuatorProblem(class, err))
			continue
		}
		evacuators = append(evacuators, evacuator)
	}
	return evacuators, problems
}

func evacuatorProblem(class string, err error) Problem {
	key := v1alpha1.EvacuatorAnnotationPrefix + class
	return Problem{Key: key, Message: fmt.Sprintf("annotation %s is ignored: %v", key, err)}
}

// parseEvacuator reads the value "<priority>/<role>" of one registration.
func parseEvacuator(class, value string) (v1alpha1.Evacuator, error) {
	if faults := validation.IsDNS1123Subdomain(class); len(faults) > 0 {
		return v1alpha1.Evacuator{}, fmt.Errorf("evacuator class %q: %s", class, faults[0])
	}
	digits, role, _ := strings.Cut(value, "/")
	// ParseUint accepts neither a sign nor a space.
	priority, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || priority > v1alpha1.MaxEvacuatorPriority {
		return v1alpha1.Evacuator{}, fmt.Errorf(`priority %q must be an integer from 0 to %d, as in "10000/controller"`,
			digits, v1alpha1.MaxEvacuatorPriority)
	}
	if length := utf8.RuneCountInString(role); length > maxRoleLength {
		return v1alpha1.Evacuator{}, fmt.Errorf("role must have at most %d characters, has %d", maxRoleLength, length)
	}
	return v1alpha1.Evacuator{EvacuatorClass: class, Priority: int32(priority), Role: role}, nil
}
