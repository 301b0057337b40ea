// Files on their way to the relay, before the message that names them.
import { Failed, upload, type Upload } from "../../connection/http";
import type { Attachment } from "../../wire/generated";

/** Files of one message; the relay takes no more. */
export const FILES_MAX = 32;

export interface Carried {
  key: number;
  name: string;
  share: number;
  done: Upload | null;
  error: string | null;
  abort: AbortController;
}

export class Files {
  all = $state.raw<Carried[]>([]);
  private next = 0;

  get isBusy(): boolean {
    return this.all.some((file) => !file.done && !file.error);
  }

  get attachments(): Attachment[] {
    return this.all.flatMap(({ done }) =>
      done
        ? [
            {
              attachment_id: done.attachment_id,
              name: done.name,
              kind: "uploaded_file",
              media_type: done.media_type,
            },
          ]
        : [],
    );
  }

  add(files: Iterable<File>): void {
    for (const file of files) {
      if (this.all.length >= FILES_MAX) return;
      const key = (this.next += 1);
      const abort = new AbortController();
      const name = file.name || "picture.png";
      this.all = [...this.all, { key, name, share: 0, done: null, error: null, abort }];
      upload(file, (share) => this.change(key, { share }), abort.signal).then(
        (done) => this.change(key, { done, share: 1 }),
        (error: unknown) => {
          const words = error instanceof Failed ? error.message : String(error);
          this.change(key, { error: words });
        },
      );
    }
  }

  remove(key: number): void {
    this.all.find((file) => file.key === key)?.abort.abort();
    this.all = this.all.filter((file) => file.key !== key);
  }

  clear(): void {
    this.all = [];
  }

  private change(key: number, more: Partial<Carried>): void {
    this.all = this.all.map((file) => (file.key === key ? { ...file, ...more } : file));
  }
}
