// The relay's HTTP API, as far as the page uses it. The credential is a cookie that scripts
// cannot read.
import type { RelayFrame } from "../wire/generated";

export interface Me {
  id: string;
  name: string;
  role: "viewer" | "operator" | "owner" | "proxy";
  version: string;
}

export interface Token {
  id: string;
  role: string;
  name: string;
  kind: "token" | "device" | "webchannel";
  created_at: string;
  last_used_at: string | null;
}

export interface Upload {
  attachment_id: string;
  name: string;
  size: number;
  media_type: string;
}

/** Recorded events of a session, in order. */
export interface HistoryPage {
  last_sequence: number;
  has_more: boolean;
  events: RelayFrame[];
}

/** The relay said no, or nothing. */
export class Failed extends Error {
  constructor(
    /** 0 when nobody answered. */
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Nobody waits longer than this for a short answer. */
const ANSWER_WITHIN_MS = 15_000;

export async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  return request<T>(path, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
  });
}

async function request<T>(path: string, init: RequestInit): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...init });
  } catch {
    throw new Failed(0, "unreachable", "The relay cannot be reached");
  }
  const told: unknown = await answer.json().catch(() => null);
  if (!answer.ok) {
    const error = (told as { error?: { code?: string; message?: string } } | null)?.error;
    const words = error?.message ?? `The relay answered ${answer.status}`;
    throw new Failed(answer.status, error?.code ?? "failed", words);
  }
  return told as T;
}

export const api = {
  me: () => call<Me>("GET", "/v1/me"),
  leave: () => call<unknown>("DELETE", "/v1/me"),
  /** Exchanges a token for a cookie, so that no script has to keep it. */
  enter: (token: string) =>
    request<Me>("/v1/me", { method: "POST", headers: { authorization: `Bearer ${token}` } }),
  pair: (code: string, device_name: string) =>
    call<{ id: string; name: string }>("POST", "/v1/pair", { code, device_name }),
  offerCode: (role?: string) =>
    call<{ code: string; link: string; expires_at: string }>(
      "POST",
      "/v1/pair/codes",
      role ? { role } : {},
    ),
  /** The secret is told this once. */
  makeToken: (role: string, name: string) =>
    call<{ id: string; token: string; role: string; name: string }>("POST", "/v1/tokens", {
      role,
      name,
    }),
  tokens: () => call<{ tokens: Token[] }>("GET", "/v1/tokens"),
  revoke: (id: string) => call<unknown>("DELETE", `/v1/tokens/${encodeURIComponent(id)}`),
  archive: (session: string, archived: boolean) =>
    call<unknown>("PATCH", `/v1/sessions/${session}`, { archived }),
  history: (session: string, after: number, limit: number) =>
    call<HistoryPage>("GET", `/v1/sessions/${session}/history?after=${after}&limit=${limit}`),
  erase: (session: string) => call<unknown>("DELETE", `/v1/sessions/${session}`),
};

/** With its progress, which `fetch` does not tell. */
export function upload(
  file: File,
  progress: (share: number) => void,
  signal: AbortSignal,
): Promise<Upload> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/v1/uploads?name=${encodeURIComponent(file.name || "file")}`);
    request.setRequestHeader("content-type", file.type || "application/octet-stream");
    request.responseType = "json";
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) progress(event.loaded / event.total);
    };
    request.onload = () => {
      if (request.status < 300) resolve(request.response as Upload);
      else {
        const told = request.response as { error?: { code: string; message: string } } | null;
        const { code, message } = told?.error ?? { code: "failed", message: "It was not taken" };
        reject(new Failed(request.status, code, message));
      }
    };
    request.onerror = () => reject(new Failed(0, "unreachable", "The relay cannot be reached"));
    request.onabort = () => reject(new Failed(0, "aborted", "Taken back"));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}

export const toolOutputUrl = (session: string, call: string) =>
  `/v1/sessions/${session}/tools/${encodeURIComponent(call)}/output`;
export const exportUrl = (session: string, format: string) =>
  `/v1/sessions/${session}/export?format=${format}`;
export const uploadUrl = (id: string) => `/v1/uploads/${encodeURIComponent(id)}`;
