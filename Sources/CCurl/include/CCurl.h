/* libcurl. Its functions that take any number of arguments are wrapped here by type, because Swift cannot import them. */
#ifndef CCURL_H
#define CCURL_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdint.h>

static inline CURLcode instar_curl_set_number(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

/* libcurl copies the text. NULL sets no text, also where libcurl has a default. */
static inline CURLcode instar_curl_set_text(CURL *easy, CURLoption option, const char *text) {
  return curl_easy_setopt(easy, option, text);
}

/* libcurl keeps the pointer: the object must live as long as the handle. */
static inline CURLcode instar_curl_set_object(CURL *easy, CURLoption option, void *object) {
  return curl_easy_setopt(easy, option, object);
}

/* Copies the body of the request. */
static inline CURLcode instar_curl_set_body(CURL *easy, const void *bytes, int64_t count) {
  CURLcode result = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)count);
  return result == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, bytes) : result;
}

typedef size_t (*instar_curl_receive)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode instar_curl_set_receive(CURL *easy, instar_curl_receive receive, void *context) {
  CURLcode result = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive);
  return result == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_WRITEDATA, context) : result;
}

/* Has no child process inherit a connection: libcurl itself does not set this flag. */
CURLcode instar_curl_close_on_exec(CURL *easy);

/* A macro that Swift cannot import. */
static inline size_t instar_curl_pause(void) { return CURL_WRITEFUNC_PAUSE; }

/* 0 where libcurl does not know the value. */
static inline long instar_curl_number(CURL *easy, CURLINFO info) {
  long value = 0;
  return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}

/* A time in microseconds; 0 where the transfer has not got so far. */
static inline int64_t instar_curl_time(CURL *easy, CURLINFO info) {
  curl_off_t value = 0;
  return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? (int64_t)value : 0;
}

/* What was set for CURLOPT_PRIVATE. */
static inline void *instar_curl_object(CURL *easy) {
  void *value = NULL;
  return curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&value) == CURLE_OK ? value : NULL;
}

static inline CURLMcode instar_curl_set_limit(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

#endif
