package store

import "maps"

// TrustOwner is the owner (secret.Sealer) of an environment's sealed trust.
func TrustOwner(environmentID string) string { return "environment/" + environmentID + "/trust" }

// SecretOwner is the owner of a sealed secret that Burano keeps for an environment.
func SecretOwner(environmentID, name string) string {
	return "environment/" + environmentID + "/secret/" + name
}

// SignInOwner is the owner of the sealed tokens of a sign-in.
func SignInOwner(id string) string { return "sign-in/" + id }

// ProofOwner is the owner of the sealed proof of a key.
const ProofOwner = "proof of the key"

// ForClasses turns the API's form of an object model into that of the classes: the applications under their property's name, the
// root with the environment's id. objects is not changed.
func ForClasses(environmentID string, objects map[string]any) Document {
	model := maps.Clone(objects)
	if services, ok := model["services"]; ok {
		delete(model, "services")
		model["applications"] = services
	}
	header, _ := model["?"].(map[string]any)
	header = maps.Clone(header)
	if header == nil {
		header = map[string]any{"type": "io.murano.Environment"}
	}
	header["id"] = environmentID
	model["?"] = header
	return model
}

// ForAPI turns the classes' form of an object model into the API's.
func ForAPI(model map[string]any) map[string]any {
	if model == nil {
		return nil
	}
	objects := maps.Clone(model)
	services, ok := objects["applications"]
	if !ok || services == nil {
		services = []any{}
	}
	delete(objects, "applications")
	objects["services"] = services
	return objects
}
