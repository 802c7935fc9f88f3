package preview

import (
	"fmt"
	"slices"
	"time"
)

// Deletion is what the deletion of an environment would do.
type Deletion struct {
	Goes  []string // what is deleted with all that is on it
	Stays []string // what is not, and is left to the user
	// Consents are clusters that go, for which clients ask.
	Consents []Consent
	Busy     *Busy // what runs in the environment, and keeps it from being deleted; nil for nothing
}

// Busy is a task that runs in an environment.
type Busy struct {
	DeploymentID, Kind string
	UserID, UserName   string // the name is "" where it is not known
	Since              time.Time
}

// OfDeletion lists what of a model, in the API's form, goes with its environment.
func OfDeletion(deployed map[string]any) Deletion {
	var deletion Deletion
	for _, one := range DestroyedClusters(deployed, nil) {
		deletion.Goes = append(deletion.Goes, one.Destroyed())
		deletion.Consents = append(deletion.Consents, Consent{ObjectID: one.ID, Name: one.Name, Text: one.Destroyed()})
	}
	var others []string
	for _, one := range Objects(deployed) {
		id, _ := one.Fields["openstackId"].(string)
		stack, _ := one.Fields["generatedHeatStackName"].(string)
		_, server := one.Fields["flavor"]
		switch {
		case stack != "":
			others = append(others, fmt.Sprintf("stack %s of %s", stack, one.Name))
		case id != "" && server:
			others = append(others, fmt.Sprintf("server %s (%s) with its disk", one.Name, id))
		case id != "" && one.Type == "io.murano.resources.CinderVolume":
			others = append(others, fmt.Sprintf("volume %s (%s)", one.Name, id))
		}
	}
	slices.Sort(others)
	deletion.Goes = append(deletion.Goes, others...)
	return deletion
}
