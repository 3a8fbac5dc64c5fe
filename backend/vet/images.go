package vet

import (
	"reflect"

	"slipway/backend/session"
)

// images are the rules of what tells of images.
var images = Tables{
	Types: map[reflect.Type]Rule{
		reflect.TypeFor[session.ImageWork](): Together(func(w *session.ImageWork) string {
			if w.State == session.WorkFailed && w.Error == nil {
				return "it failed and does not say why"
			}
			return ""
		}),
		reflect.TypeFor[map[string]string](): Each(labels),
	},
	Fields: map[reflect.Type]Fields{
		reflect.TypeFor[session.Image](): {
			"ID": imageID, "Refs": GoodOf(1000, reference), "Digests": GoodOf(1000, reference), "Arch": title,
			"Origin": OrNone(), "CreatedAt": OrZero(Moment),
			"UsedBy": List(MostSessions), "Owners": List(1000, Owner),
		},
		// An origin is read from labels, which anybody can write: see OrNone.
		reflect.TypeFor[session.ImageOrigin](): {
			"Name": Mark, "Owner": Maybe(Owner), "Instance": Maybe(Mark), "Session": Maybe(id),
			"SessionName": Maybe(name), "Base": Maybe(reference), "Series": Maybe(name),
		},
		reflect.TypeFor[session.ImageUser](): {"Name": name, "Owner": Maybe(Owner)},
		reflect.TypeFor[session.ImageWork](): {
			"ID": Mark, "Ref": Maybe(reference), "Owner": Maybe(Owner), "Session": Maybe(id), "Revision": Free,
		},
		reflect.TypeFor[session.ImageDisk](): {"Images": List(MostSessions)},
		reflect.TypeFor[session.ImageRoom](): {"Containers": count},
		reflect.TypeFor[session.ImageParts](): {
			"ID": imageID, "Refs": GoodOf(1000, reference), "Arch": title, "OS": title,
			"Layers": List(mostLayers),
		},
		reflect.TypeFor[session.ImageLayer](): {"Digest": digest},
		reflect.TypeFor[session.ImageArrival](): {
			"ID": imageID, "Missing": List(mostLayers + 1), "Present": Whole(0, mostLayers),
		},
		reflect.TypeFor[session.PartMark](): {
			"Part": Text("a part of an image", func(text string) bool {
				return text == session.ImageConfig ||
					isDigest(text)
			}),
		},
	},
}

// labels cleans the labels of an image, which hold whatever its maker wrote.
func labels(of *map[string]string) string {
	const most = 10_000
	if len(*of) > most {
		return "there are too many labels"
	}
	for name, value := range *of {
		switch {
		case !still(name, mostTitle):
			delete(*of, name)
		case !plain(value, mostText):
			(*of)[name] = clean(value, mostText, true)
		}
	}
	return ""
}
