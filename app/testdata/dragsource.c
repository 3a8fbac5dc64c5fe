// A window in the corner of the screen from which a file can be dragged, as from a file manager.
#include <gtk/gtk.h>

static void give(GtkWidget *box, GdkDragContext *drag, GtkSelectionData *data, guint info, guint time, gpointer uri) {
	gchar *uris[] = {uri, NULL};
	gtk_selection_data_set_uris(data, uris);
}

int main(int count, char **values) {
	gtk_init(&count, &values);
	GtkWidget *window = gtk_window_new(GTK_WINDOW_POPUP), *box = gtk_event_box_new();
	gtk_container_add(GTK_CONTAINER(window), box);
	gtk_window_set_default_size(GTK_WINDOW(window), 60, 60);
	gtk_drag_source_set(box, GDK_BUTTON1_MASK, NULL, 0, GDK_ACTION_COPY);
	gtk_drag_source_add_uri_targets(box);
	g_signal_connect(box, "drag-data-get", G_CALLBACK(give), g_filename_to_uri(values[1], NULL, NULL));
	gtk_window_set_title(GTK_WINDOW(window), "drag source");
	gtk_widget_show_all(window);
	gtk_main();
}
